// Holds what the parts of the data floor share: references to the floors below and to each other,
// and calls to parts that are built later.
// Thread safety: Core is immutable once a filesystem is put together. Each part's header states the
// thread safety of the part. The functions run on the caller's thread, may wait for the device, and
// must not be called with a lock of the metadata engine held. After a crash: memory only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/checksums.h"
#include "fuse-fs/data/epoch.h"
#include "fuse-fs/data/epoch_stream.h"
#include "fuse-fs/data/health.h"
#include "fuse-fs/data/inode_state.h"
#include "fuse-fs/data/trace_recorder.h"
#include "fuse-fs/data/write_cache.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/placement/placement.h"

namespace streamfs::data {

inline constexpr uint64_t kMaxFileBytes = meta::kMaxFileBlocks * kBlockSize;

struct Core {
  EpochStream& device;
  WriteCache& write_cache;  // beneath `device`
  meta::Engine& engine;
  placement::Placement& placement;
  Health& health;
  Epochs& epochs;
  InodeStates& states;
  Checksums& checksums;
  TraceRecorder& trace;
  // Frees blocks until is_enough() returns true, none is left to free, or freeing fails. Call it
  // before returning ENOSPC. It asks is_enough() after each round.
  std::function<void(const std::function<bool()>& is_enough)> reclaim;
  std::function<void()> free_orphans;  // Maintenance::free_orphans(), which logs its errors
  // Grows META for a change that found no unit when META had `meta_bytes` bytes, or waits for a
  // growth that is under way. Returns whether the change may succeed now.
  std::function<bool(uint64_t meta_bytes)> make_meta_room;
  std::function<void()> keep_meta_room;  // grows META if it is nearly full and may grow
  // Reads DATA's label, and calls health.lose() if it is another filesystem's. Ignores I/O errors.
  std::function<void()> look_at_device;
};

}  // namespace streamfs::data
