// Runs operations on a small metadata engine, cuts the power everywhere in them, and holds what
// recovery finds against what was there before and after each. META may be kept twice: then so do
// a mount of both copies, which each kept their own choice, and a mount of either alone, before and
// after that of both.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/types.h"
#include "fuse-fs/meta/engine.h"
#include "pmem/recording_region.h"
#include "pmem/region.h"

namespace streamfs::meta {

// Two reads of it never give the same time, and two runs give the same times.
class TickingClock final : public Clock {
 public:
  explicit TickingClock(int64_t from) : next_(from) {}
  Timestamp now() override { return {next_++, 5}; }
  uint64_t monotonic_ms() override { return 0; }

 private:
  int64_t next_;
};

// The tree as text: names, attributes, targets, xattrs, extents. Two equal texts are equal trees.
std::string tree_text(Engine& engine);

// Reserves, overwrites and finishes a write of whole blocks; checksums are made up. Nothing is
// committed. Errors: those of the engine.
Result<void> write_blocks(Engine& engine, InodeId id, uint64_t first, uint64_t count);

// Fills holes with blocks and commits them as unwritten extents.
Result<void> preallocate(Engine& engine, InodeId id, uint64_t first, uint64_t count);

struct Recovered {
  std::string tree;
  std::string problems;
};

class EngineProver {
 public:
  static constexpr uint64_t kMetaBytes = 1536 * 1024;
  static constexpr uint64_t kDataBlocks = 8192;

  enum class Kept : uint8_t { kOnce, kTwice };
  explicit EngineProver(Kept kept = Kept::kOnce);  // a fresh filesystem
  // A recorded filesystem: words() of another prover.
  explicit EngineProver(const std::vector<uint64_t>& words, Kept kept = Kept::kOnce);
  ~EngineProver();

  Engine& engine() { return *engine_; }
  std::vector<uint64_t> words() const { return region_->words(); }

  using Step = std::function<void(Engine&)>;
  struct Options {
    pmem::ExploreOptions explore{
        {pmem::StoreModel::kLinePrefix, pmem::StoreModel::kAnyWord}, 256, 48, 1};
    size_t failures_max = 2;      // stops there
    size_t recovery_every = 200;  // of so many images, one whose recovery is cut everywhere too
    std::function<bool()> go_on = {};  // asked after the steps; no: nothing is explored
  };
  struct Outcome {
    uint64_t images = 0;             // distinct ones
    uint64_t in_recovery = 0;        // of cuts in the recovery of some of them
    std::vector<std::string> wrong;  // sentences: expected this, found that
  };
  // After any cut the tree is that before or after the step under way, and check() finds nothing.
  Outcome prove(const std::vector<Step>& steps, const Options& options);
  Outcome prove(const std::vector<Step>& steps) { return prove(steps, Options()); }

 private:
  struct Allowed {
    const std::string& before;
    const std::string* after;  // none: nothing is under way
    bool has(const std::string& tree) const {
      return tree == before || (after != nullptr && tree == *after);
    }
  };
  void open();
  Recovered recover(std::vector<uint64_t>& words) const;
  // Returns the mistakes in these words, "" if there are none. Stores the recovered tree in `tree`.
  std::string judge(std::vector<uint64_t>& words, const Allowed& allowed, std::string& tree) const;
  // Cuts the recovery of these words everywhere: the next recovery ends as one without a cut does.
  void prove_recovery(const pmem::CrashImage& image, const Allowed& allowed,
                      const std::string& tree, Outcome& outcome);

  TickingClock clock_{1000};
  const Kept kept_;
  std::unique_ptr<pmem::RecordingRegion> region_;
  std::unique_ptr<pmem::Region> mirror_;  // of what region_ holds, if kept twice
  std::unique_ptr<Engine> engine_;
};

}  // namespace streamfs::meta
