#include "fuse-fs/data/inode_state.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "base/types.h"

namespace streamfs::data {

namespace {

// Returns whether only the map itself has a reference. The map gives out no other meanwhile. The
// fence makes the last user's changes visible.
bool unused(const std::shared_ptr<InodeState>& state) {
  if (state.use_count() > 1) return false;
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

}  // namespace

std::shared_ptr<InodeState> InodeStates::get(InodeId id) {
  Shard& home = shard(id);
  const MutexLock lock(home.mutex);
  if (home.states.size() >= home.swept_at) sweep(home);
  std::shared_ptr<InodeState>& state = home.states[id];
  if (state == nullptr) state = std::make_shared<InodeState>();
  return state;
}

void InodeStates::sweep(Shard& at) {
  const uint64_t flushed = flushed_.load(std::memory_order_relaxed);
  std::erase_if(at.states, [flushed](const auto& entry) {
    const InodeState& state = *entry.second;
    return unused(entry.second) && state.inferred.load(std::memory_order_relaxed) == 0 &&
           state.last_epoch.load(std::memory_order_relaxed) <= flushed;
  });
  at.swept_at = std::max(kSweptAt, 2 * at.states.size());
}

void InodeStates::release(InodeId id, uint64_t flushed) {
  Shard& home = shard(id);
  const MutexLock lock(home.mutex);
  const auto it = home.states.find(id);
  if (it == home.states.end() || !unused(it->second)) return;
  if (it->second->last_epoch.load(std::memory_order_relaxed) <= flushed) home.states.erase(it);
}

}  // namespace streamfs::data
