// The workload of the fault sweep, and what it was promised.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/types.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {

// Small files that are created, overwritten and replaced again and again, each with an fsync. An
// error is what the sweep causes, so it is noted and the workload goes on.
class SweepWorkload {
 public:
  explicit SweepWorkload(Rig& rig) : rig_(rig) {}

  void step();
  // Sixty seconds of everything that a mount does by itself.
  void let_time_pass();

  // Whether a new file can be written and synced.
  bool writes() { return recreate("again", 0); }

  struct Found {
    uint64_t files = 0;  // all promised files
    std::vector<std::string> lost;
  };
  // Compares every file of the mounted filesystem with what fsync() promised.
  Found check() const;

 private:
  static constexpr uint64_t kFiles = 40;
  struct File {
    std::optional<uint64_t> promised;  // the seed of the content that the last fsync() covered
    std::set<uint64_t> attempted;      // seeds of later writes
  };

  static std::string name_of(uint64_t file) { return "f" + std::to_string(file); }
  static std::vector<std::byte> content(uint64_t seed);
  bool write_and_sync(const std::string& name, uint64_t seed);
  std::optional<InodeId> find(const std::string& name) const;
  bool make(const std::string& name);
  bool recreate(const std::string& name, uint64_t seed);
  bool replace(const std::string& name, uint64_t seed);
  std::optional<std::string> fault_of(uint64_t file) const;
  bool may_hold(const File& file, const std::vector<std::byte>& bytes) const;

  Rig& rig_;
  uint64_t steps_ = 0;
  std::vector<File> files_{kFiles};
};

}  // namespace streamfs::data
