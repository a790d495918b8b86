// Grows a META file when it is nearly full, and logs why if it cannot.
//
// Each step adds half of the heap, but at most 1 GiB and no more than up to the largest size. If
// the medium has no room for that, the step adds 1 MiB.
//
// Thread safety: any thread, with no lock of the metadata engine held. Concurrent calls share a
// growth. After a crash: as after any growth (docs/ORDERING.md, "Growing").
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/data/group_run.h"
#include "fuse-fs/meta/engine.h"

namespace streamfs::data {

class MetaGrowth {
 public:
  struct Limits {
    bool automatic = false;   // the mount option meta_growth: META may grow by itself
    bool extensible = false;  // META is a file
    uint64_t size_max = 0;    // bytes; 0: as mkfs planned
  };
  using Grow = std::function<Result<void>(const GrowOptions&)>;  // EBUSY: another is under way
  // Waits for a growth by command. Returns false if none is under way.
  using Await = std::function<bool()>;

  MetaGrowth(meta::Engine& engine, Clock& clock, const Limits& limits, Grow grow, Await await)
      : engine_(engine),
        clock_(clock),
        limits_(limits),
        grow_(std::move(grow)),
        await_(std::move(await)) {}

  // Grows META if it is nearly full and may grow. If it stays nearly full, logs the reason once.
  // The reclaimer calls this regularly.
  void keep_room();
  // Grows META for a change that found no heap unit when META had `before` bytes, or waits for a
  // growth by command. Returns whether the change is worth a retry: META has grown since, or its
  // heap has room again.
  bool make_room(uint64_t before);

  MetaRoom room() const;
  uint64_t growable_files() const;  // files that fit into the bytes by which META may grow

 private:
  static constexpr uint64_t kFirstRetryMs = 1000, kLastRetryMs = 60'000;  // after a failure

  uint64_t size_max(const meta::Superblock& super) const;
  uint64_t growable_bytes() const;
  Result<void> grow_once();
  Result<void> grow_by(uint64_t bytes);
  std::string advice() const;

  meta::Engine& engine_;
  Clock& clock_;
  const Limits limits_;
  const Grow grow_;
  const Await await_;
  GroupRun growths_;
  uint64_t retry_ms_ = 0, pause_ms_ = kFirstRetryMs;  // used inside growths_.run() only
  mutable Mutex mutex_;                               // leaf
  std::string failed_ SFS_GUARDED_BY(mutex_);         // why the last growth failed
  bool said_ SFS_GUARDED_BY(mutex_) = false;          // the reason was logged
};

}  // namespace streamfs::data
