#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/types.h"
#include "fuse-fs/meta/block_allocator.h"
#include "fuse-fs/meta/block_allocator_impl.h"
#include "fuse-fs/meta/freed_runs.h"

namespace streamfs::meta {

std::optional<BlockRun> BlockAllocator::reserve_free(BlockNo from, uint64_t most) {
  SFS_ASSERT(most > 0);
  const MutexLock lock(impl_->mutex);
  for (uint64_t at = from.value; at < impl_->blocks();) {
    const uint64_t region_end =
        std::min(round_down(at, kRegionBlocks) + kRegionBlocks, impl_->blocks());
    const bool filled = impl_->owner_of(at / kRegionBlocks) != Impl::kNobody;
    const uint64_t first = filled ? region_end : impl_->next_free(at, region_end);
    if (first == region_end) {
      at = region_end;
      continue;
    }
    const uint64_t group_end =
        std::min(round_down(first, kGroupBlocks) + kGroupBlocks, impl_->blocks());
    const uint64_t limit = std::min(first + most, group_end);
    uint64_t end = impl_->free_until(first, std::min(limit, region_end));
    while (end < limit && end % kRegionBlocks == 0 &&
           impl_->owner_of(end / kRegionBlocks) == Impl::kNobody) {
      const uint64_t stop = impl_->free_until(end, std::min(limit, end + kRegionBlocks));
      if (stop == end) break;
      end = stop;
    }
    impl_->mark(first, end - first, true);
    return BlockRun{BlockNo{first}, end - first};
  }
  return std::nullopt;
}

bool BlockAllocator::reserve_exactly(BlockRun run) {
  const MutexLock lock(impl_->mutex);
  const uint64_t end = run.first.value + run.count;
  if (end > impl_->blocks()) return false;
  for (uint64_t at = run.first.value, stop = 0; at < end; at = stop) {
    stop = std::min(round_down(at, kRegionBlocks) + kRegionBlocks, end);
    const bool filled = impl_->owner_of(at / kRegionBlocks) != Impl::kNobody;
    if (filled || !impl_->is_free(at) || impl_->free_until(at, stop) != stop) return false;
  }
  impl_->mark(run.first.value, run.count, true);
  return true;
}

void BlockAllocator::cancel(BlockRun run) {
  const MutexLock lock(impl_->mutex);
  impl_->mark(run.first.value, run.count, false);
}

void BlockAllocator::on_discarded(std::function<void(BlockRun)> discarded) {
  impl_->discarded = std::move(discarded);
}

void BlockAllocator::discard_content(BlockRun run) {
  if (impl_->discarded) impl_->discarded(run);
}

void BlockAllocator::discard(BlockRun run) {
  discard_content(run);
  const MutexLock lock(impl_->mutex);
  impl_->gone.discarded(run);
  impl_->pending += run.count;
}

std::optional<BlockRun> BlockAllocator::next_discard(uint64_t max_blocks) {
  const MutexLock lock(impl_->mutex);
  return impl_->gone.take_discarded(max_blocks, kGroupBlocks);
}

// Reserved and allocated blocks look the same here; the bitmap in META tells them apart.
void BlockAllocator::committed_allocation(BlockRun run) {
  SFS_ASSERT(run.first.value + run.count <= impl_->geometry.data_blocks());
}

void BlockAllocator::about_to_free(BlockRun run) {
  const MutexLock lock(impl_->mutex);
  const uint64_t last = (run.first.value + std::max<uint64_t>(run.count, 1) - 1) / kGroupBlocks;
  for (uint64_t at = run.first.value / kGroupBlocks; at <= last; ++at) impl_->open(at);
}

void BlockAllocator::committed_free(BlockRun run, TxId tx) {
  discard_content(run);
  const MutexLock lock(impl_->mutex);
  SFS_ASSERT(impl_->groups[run.first.value / kGroupBlocks].regions != nullptr);
  impl_->gone.freed(run, tx);
  impl_->pending += run.count;
}

void BlockAllocator::release_up_to(TxId tx) {
  const MutexLock lock(impl_->mutex);
  impl_->gone.release_up_to(tx);
}

std::optional<BlockRun> BlockAllocator::next_trim(uint64_t max_blocks) {
  SFS_ASSERT(max_blocks > 0);
  const MutexLock lock(impl_->mutex);
  while (impl_->gone.none_released() && impl_->searched < impl_->groups.size()) {
    Impl::Group& group = impl_->groups[impl_->searched];
    impl_->count(group, impl_->searched);
    if (group.untrimmed > 0) impl_->open(impl_->searched);
    ++impl_->searched;
  }
  return impl_->gone.take(max_blocks, kGroupBlocks);
}

void BlockAllocator::trimmed(BlockRun run) {
  const MutexLock lock(impl_->mutex);
  impl_->mark(run.first.value, run.count, false);
  impl_->pending -= run.count;
}

}  // namespace streamfs::meta
