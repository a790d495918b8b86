// META that grows by itself, and what people are told when it cannot.
//
// A META in a file is made half as large again when 90 % of its heap is in use, up to a largest
// size. Thread safety: any thread. What a crash leaves: that of a growth (docs/ORDERING.md).
#pragma once

#include <atomic>
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
    bool automatic = false;
    bool extensible = false;  // META is a file
    uint64_t size_max = 0;    // bytes; 0: a file for each 16 KiB of DATA, or what mkfs planned
  };
  using Grow = std::function<Result<void>(const GrowOptions&)>;

  MetaGrowth(meta::Engine& engine, Clock& clock, const Limits& limits, Grow grow)
      : engine_(engine), clock_(clock), limits_(limits), grow_(std::move(grow)) {}

  // Grows META where it is 90 % full and may grow; says once why it does not. Called regularly.
  void keep_room();
  // For a change that found no room: true if META has grown since the call, so that it may be tried
  // again. May wait for a growth.
  bool make_room();

  MetaRoom room() const;
  uint64_t growable_units() const;  // of the heap, beyond what it has

 private:
  static constexpr uint64_t kRetryMs = 1000;  // after a growth that failed

  bool nearly_full() const;
  uint64_t size_max() const;
  Result<void> grow_once();
  std::string advice(const std::string& failed) const;

  meta::Engine& engine_;
  Clock& clock_;
  const Limits limits_;
  const Grow grow_;
  GroupRun growths_;
  std::atomic<uint64_t> retry_ms_{0};          // no growth is tried sooner
  mutable Mutex mutex_;                        // leaf
  std::string failed_ SFS_GUARDED_BY(mutex_);  // why the last growth failed
  bool said_ SFS_GUARDED_BY(mutex_) = false;
};

}  // namespace streamfs::data
