// Runs sequences of joint_operations.h, cuts the last operation of each everywhere (joint_cuts.h),
// and judges every state that is left with the model (joint_model.h). Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "fuse-fs/data/filesystem_impl.h"
#include "pmem/recording_region.h"
#include "pmem/region.h"
#include "tests/crash/joint_cuts.h"
#include "tests/crash/joint_device.h"
#include "tests/crash/joint_model.h"
#include "tests/crash/joint_operations.h"
#include "tests/crash/joint_rig.h"

namespace streamfs::joint {

struct Tally {
  uint64_t sequences = 0, wrong = 0;
  uint64_t in_recovery = 0;  // states of cuts that were made in a recovery
  void add(const Tally& other) {
    sequences += other.sequences;
    in_recovery += other.in_recovery;
    wrong += other.wrong;
  }
};

// Hashes of states.
using States = std::unordered_set<uint64_t>;
constexpr bool is_lost(uint64_t state) {  // META is lost
  return (state & 1) != 0;
}

class Prover {
 public:
  Prover(Kept kept, uint64_t seed);
  // Proves one sequence, prints each wrong state and adds to `tally`. A sequence in which a call
  // fails, or finds its file missing, is skipped and not counted.
  void prove(const Sequence& sequence, Tally& tally);
  const States& states() const { return states_; }

 private:
  std::string judge(const State& state);
  std::string judge_kept(const State& state, bool cuts_recovery);
  std::string judge_lost(const State& state, bool cuts_recovery);
  std::string compare(const Result<FoundFiles>& found, const State& state, Model::Meta meta) const;
  Result<FoundFiles> mount(std::unique_ptr<pmem::Region> region, const BlockTable& from);
  Result<FoundFiles> rebuild(pmem::Region& region, const BlockTable& from);
  std::string cut_recovery(pmem::RecordingRegion& region, Kept kept, const State& state,
                           const FoundFiles& expected, Model::Meta meta);

  const Image image_;
  const uint64_t seed_;
  std::vector<uint64_t> zeroes_, zeroes_again_;  // for a META that was lost
  States checked_;                               // hashes of a state and of the model
  States states_;
  const Model* model_ = nullptr;
  Tally* tally_ = nullptr;
  bool whole_ = false;  // mount() opens a FilesystemImpl, and else calls recover_and_look()
};

}  // namespace streamfs::joint
