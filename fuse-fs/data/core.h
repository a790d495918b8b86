// What the parts of the data floor share: references to the floors below and to each other.
// Thread safety: immutable; each part says its own.
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
  // Frees what can be freed at once, until that is enough: called before ENOSPC is given to anyone.
  std::function<void(const std::function<bool()>& is_enough)> reclaim;
  std::function<void()> free_orphans;
  // META grows, for a change that found no unit when it had so many bytes; waits for a growth that
  // is under way. Returns whether the change may succeed now.
  std::function<bool(uint64_t meta_bytes)> make_meta_room;
  std::function<void()> keep_meta_room;  // META grows if it is nearly full and may
  std::function<void()> look_at_device;  // whether it is still DATA of this filesystem
};

}  // namespace streamfs::data
