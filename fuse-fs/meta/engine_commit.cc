// The engine's part for the data path: commits of files.
#include <algorithm>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/conditional_record.h"
#include "fuse-fs/meta/engine_impl.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/flushed.h"

namespace streamfs::meta {

Result<void> Engine::commit_inode(InodeId id, uint64_t epoch) {
  SFS_TRY(writable());
  const InodeRef inode = cache_.find(id);
  if (!inode) return {};
  const std::unique_lock lock(inode->mutex);
  if (!inode->alive || !inode->dirty()) return {};
  pmem::Flushed flushed = publish_checksums(*inode, epoch);
  flushed += flush_new_checksums(*inode, epoch);
  // With an intent log the record may replace a block that an fsync made durable by one whose old
  // owner had another checksum.
  if (geometry_.intent_segments() > 0 && !flushed.none()) {
    region_.fence(std::move(flushed));
    return commit_steps(*inode, epoch);
  }
  return commit_steps(*inode, epoch, std::move(flushed));
}

Result<bool> Engine::commit_ahead(InodeId id, uint64_t epoch, uint64_t flushed) {
  SFS_TRY(writable());
  const InodeRef inode = cache_.find(id);
  if (!inode) return false;
  const std::unique_lock lock(inode->mutex);
  if (!inode->alive || !inode->extents) return false;
  const auto conditions = conditions_of(*inode, checksums_, epoch, flushed);
  if (!conditions) return false;
  pmem::Flushed checksums = publish_checksums(*inode, flushed);
  checksums += flush_new_checksums(*inode, epoch);
  SFS_ASSIGN(const bool complete, commit_step(*inode, epoch, std::move(checksums), *conditions));
  SFS_ASSERT(complete);  // there are fewer steps than a record has room for
  return true;
}

Result<bool> Engine::commit_logged(InodeId id, uint64_t epoch, pmem::Flushed entries) {
  const auto fence = [&] {
    if (!entries.none()) region_.fence(std::move(entries));
    return true;
  };
  if (const Result<void> done = writable(); !done.ok()) {
    (void)entries.leave();
    return done.error();
  }
  const InodeRef inode = cache_.find(id);
  if (!inode) return fence();
  const std::unique_lock lock(inode->mutex);
  if (!inode->alive || !inode->dirty()) return fence();
  entries += publish_checksums(*inode, epoch);
  entries += flush_new_checksums(*inode, epoch);
  fence();  // no record may outlive its entries
  return commit_step(*inode, epoch, {}, {}, Steps::kOne);
}

Result<void> Engine::commit_steps(Inode& inode, uint64_t epoch, pmem::Flushed checksums) {
  Result<bool> complete = commit_step(inode, epoch, std::move(checksums));
  while (complete.ok() && !*complete) complete = commit_step(inode, epoch, {});
  return complete.ok() ? Result<void>() : complete.error();
}

pmem::Flushed Engine::publish_checksums(Inode& inode, uint64_t epoch) {
  pmem::Flushed flushed;
  auto later = inode.overwritten.begin();
  for (const Inode::Overwritten& run : inode.overwritten) {
    if (run.epoch > epoch) {
      *later++ = run;
    } else {
      flushed += checksums_.publish(run.first, run.count, run.epoch);
    }
  }
  inode.overwritten.erase(later, inode.overwritten.end());
  return flushed;
}

pmem::Flushed Engine::flush_new_checksums(const Inode& inode, uint64_t epoch) {
  pmem::Flushed flushed;
  if (!inode.extents) return flushed;
  inode.extents->for_each_added(epoch, [&](const Extent& extent, uint64_t) {
    flushed += checksums_.flush(BlockNo{extent.block}, extent.length);
  });
  return flushed;
}

// Commits one record. Returns false if the inode needs further records; with kOne it then commits
// none.
Result<bool> Engine::commit_step(Inode& inode, uint64_t epoch, pmem::Flushed checksums,
                                 std::span<const DataCondition> conditions, Steps steps) {
  Change change = this->change();
  change.tx.fences(std::move(checksums));
  for (const DataCondition& each : conditions) change.tx.condition(each);
  InodeImage& next = change.next(inode);
  ExtentMap::Plan plan;
  if (inode.extents && inode.extents->dirty()) {
    auto planned = inode.extents->plan(change.tx, next, epoch);
    if (!planned) {
      SFS_TRY(inode.extents->restore(inode.committed));
      return planned.error();
    }
    plan = std::move(planned).value();
    if (!plan.complete && steps == Steps::kOne) {
      SFS_TRY(inode.extents->restore(inode.committed));
      return false;
    }
  }
  put_current(inode, next, epoch, plan);
  const bool complete = plan.complete;
  SFS_TRY(commit_plan(inode, change, std::move(plan)));
  if (complete) size_committed(inode, epoch);
  return complete;
}

// Commits the change, together with a plan of the inode's extents.
Result<void> Engine::commit_plan(Inode& inode, Change& change, ExtentMap::Plan plan) {
  InodeImage& next = change.next(inode);
  uint64_t blocks = block_count(next);
  for (const BlockRun& run : plan.allocated) {
    change.tx.run(run.first, run.count, RunKind::kAllocate);
    blocks += run.count;
  }
  for (const BlockRun& run : plan.freed) blocks -= std::min(blocks, run.count);
  set_block_count(next, blocks);
  for (const BlockRun& run : plan.freed) {
    blocks_.about_to_free(run);
    change.tx.run(run.first, run.count, RunKind::kFree);
  }
  const Result<TxId> committed = change.commit();
  if (!committed) {
    if (inode.extents) SFS_TRY(inode.extents->restore(inode.committed));
    return committed.error();
  }
  for (const BlockRun& run : plan.allocated) blocks_.committed_allocation(run);
  for (const BlockRun& run : plan.freed) {
    checksums_.drop_in_flux(run.first, run.count);
    blocks_.committed_free(run, *committed);
  }
  if (inode.extents) inode.extents->done(std::move(plan));
  return {};
}

namespace {

uint64_t size_at(const Inode& inode, uint64_t epoch) {
  uint64_t size = inode.ready_size;
  for (const Inode::Growth& growth : inode.growth) {
    if (growth.epoch <= epoch) size = growth.size;
  }
  return size;
}

// Returns the flag that tells the next mount how to treat blocks past the size, if a crash makes
// this record the last of several. Only a truncation frees blocks that were preallocated there.
uint16_t resumed_as(const Inode& inode, const InodeImage& next, uint64_t size, bool in_place) {
  const bool shrinks = size < next.size || (next.flags & kTruncating) != 0;
  if (shrinks) return kTruncating;
  const bool keeps = in_place || (next.flags & kExtending) != 0 ||
                     inode.extents->unwritten_from(div_round_up(next.size, kBlockSize));
  return keeps ? kExtending : kTruncating;
}

}  // namespace

// If the change takes several records, blocks past the size may exist until the last of them.
void Engine::put_current(Inode& inode, InodeImage& next, uint64_t epoch,
                         const ExtentMap::Plan& plan) {
  next.mtime = inode.mtime;
  next.ctime = inode.ctime;
  const uint64_t size = size_at(inode, epoch);
  uint16_t resumed = 0;
  if (!plan.complete) resumed = resumed_as(inode, next, size, plan.in_place > 0);
  next.size = plan.complete ? size : std::min(next.size, size);
  next.flags = static_cast<uint16_t>((next.flags & ~(kTruncating | kExtending)) | resumed);
}

void Engine::size_committed(Inode& inode, uint64_t epoch) {
  inode.ready_size = size_at(inode, epoch);
  std::erase_if(inode.growth, [epoch](const auto& growth) { return growth.epoch <= epoch; });
  inode.attributes_dirty = !inode.growth.empty();
}

}  // namespace streamfs::meta
