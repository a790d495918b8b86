// A whole filesystem on META and DATA in memory, for states of joint_cuts.h: mounts, what a mount
// finds, and calls that keep the model (joint_model.h) in step.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "base/waiting.h"
#include "fuse-fs/data/filesystem_impl.h"
#include "pmem/recording_region.h"
#include "pmem/region.h"
#include "tests/crash/joint_device.h"
#include "tests/crash/joint_model.h"

namespace streamfs::joint {

enum class Kept : uint8_t { kOnce, kTwice };

class StillClock final : public Clock {
 public:
  Timestamp now() override { return {static_cast<int64_t>(1'700'000'000 + ms / 1000), 0}; }
  uint64_t monotonic_ms() override { return ms; }
  uint64_t ms = 1000;
};

// An empty filesystem. META is one copy, or two one after the other.
struct Image {
  explicit Image(Kept kept);
  uint64_t copy_bytes() const { return kept == Kept::kTwice ? meta.size() * kWordSize / 2 : 0; }
  const Kept kept;
  std::vector<uint64_t> meta;
  Contents contents;
  BlockTable data;
};

// Returns META of a filesystem in `region`, which outlives it.
std::unique_ptr<pmem::Region> view(pmem::Region& region, Kept kept);

// A mount of the whole filesystem, without threads. If `attaches`, open() counts an attachment and
// renews the label, as a mount that writes does. Requires: without `attaches`, the caller only
// reads.
class Mount {
 public:
  static Result<std::unique_ptr<Mount>> open(std::unique_ptr<pmem::Region> region,
                                             MemoryDevice& device, Clock& clock, bool attaches);
  data::FilesystemImpl& fs() { return *fs_; }
  // Returns all files, and checks META. Errors: EIO, something is not sound.
  Result<FoundFiles> look();

 private:
  Mount() = default;
  pmem::Region* region_ = nullptr;  // of fs_
  std::unique_ptr<data::FilesystemImpl> fs_;
};

// Returns the files that Mount::look() returns. Runs the recovery and the reads of a mount without
// placement, which takes most of a mount's time.
Result<FoundFiles> recover_and_look(pmem::Region& region, MemoryDevice& device);

// Rebuilds META from the log on DATA, into a zeroed region.
Result<void> restore(pmem::Region& region, MemoryDevice& device);

// A filesystem whose META and DATA are recorded, with a model of it. Each call is a mark.
class Actor {
 public:
  explicit Actor(const Image& image);
  ~Actor();

  void create(const std::string& name);
  void unlink(const std::string& name);
  void rename(const std::string& from, const std::string& to);
  void write(const std::string& name, uint64_t sector, uint64_t sectors);
  void write_blocks(const std::string& name, uint64_t block, uint64_t count) {
    write(name, block * kSectors, count * kSectors);
  }
  // Writes every other block, in one call.
  void write_scattered(const std::string& name, uint64_t blocks);
  void truncate(const std::string& name, uint64_t sectors);
  void punch(const std::string& name, uint64_t block, uint64_t count);
  void zero(const std::string& name, uint64_t block, uint64_t count);
  void preallocate(const std::string& name, uint64_t block, uint64_t count);
  void fsync(const std::string& name, bool data_only = false);
  void sync();
  void timer(uint64_t milliseconds);  // advances the clock, then runs one round of the timer
  void age();  // runs the timer for 5.5 s, after which no promise depends on META
  void reclaim();
  // Runs `within` inside the next call, before its first flush or write of DATA. It stands for a
  // second thread. If one of its calls would have to wait, the sequence is skipped.
  using Within = void (*)(Actor&);
  void before_flush(Within within) { before(MemoryDevice::Event::Kind::kFlush, within); }
  void before_write(Within within) { before(MemoryDevice::Event::Kind::kWrite, within); }
  // Kills the mount and mounts again; every store and write so far is kept. Sets no mark.
  void cut_and_mount();

  // False once a call has failed: the sequence has nothing to work on.
  bool runs() const { return runs_; }
  uint64_t blocks(const std::string& name) {  // 0: there is no such file
    return model_.has(name) ? div_round_up(model_.size(name), kBlockSize) : 0;
  }
  size_t calls() const { return model_.calls(); }
  const Model& model() const { return model_; }
  const pmem::RecordingRegion& region() const { return *region_; }
  const MemoryDevice& device() const { return *device_; }

  static constexpr uint64_t kSectors = kBlockSize / kSectorBytes;

 private:
  void mount();
  void before(MemoryDevice::Event::Kind kind, Within within) {
    device_->before_next(kind, [this, within] {
      const Trying trying;
      within(*this);
    });
  }
  bool has(const std::string& name);
  InodeId id(const std::string& name);
  void allocate(const std::string& name, int mode, uint64_t block, uint64_t count);
  void done(const Result<void>& result);

  const Image& image_;
  StillClock clock_;
  Model model_;
  std::map<std::string, InodeId> ids_;
  int value_ = 0;
  bool runs_ = true;
  BlockTable data_;
  Contents contents_;
  std::unique_ptr<MemoryDevice> device_;
  std::unique_ptr<pmem::RecordingRegion> region_;
  std::unique_ptr<Mount> mount_;
};

}  // namespace streamfs::joint
