// The engine's part for the data path: maps of files, changes that wait for a device flush, and
// their commit.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/conditional_record.h"
#include "fuse-fs/meta/engine_impl.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/flushed.h"

namespace streamfs::meta {

// ---- Reading the current view

namespace {

Piece hole(uint64_t first, uint64_t end) {
  Piece piece;
  piece.first = FileBlock{first};
  piece.length = end - first;
  piece.hole = true;
  return piece;
}

Piece mapped(const Extent& extent, uint64_t end) {
  Piece piece;
  piece.first = FileBlock{extent.first};
  piece.length = std::min(extent.end(), end) - extent.first;
  piece.block = BlockNo{extent.block};
  piece.unwritten = extent.unwritten;
  piece.vstream = VStreamId{extent.vstream};
  return piece;
}

uint64_t blocks_of(uint64_t bytes) {
  return div_round_up(bytes, kBlockSize);
}

}  // namespace

Result<std::vector<Piece>> Engine::map(InodeId id, FileBlock first, uint64_t count) {
  if (first.value > kMaxFileBlocks || count > kMaxFileBlocks - first.value) return Error{EFBIG};
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(const ExtentMap* extents, this->extents(*inode));
  std::vector<Piece> pieces;
  const uint64_t end = first.value + count;
  for (uint64_t at = first.value; at < end;) {
    const std::optional<Extent> next = extents->next(at);
    if (!next || next->first >= end) {
      pieces.push_back(hole(at, end));
      break;
    }
    if (next->first > at) pieces.push_back(hole(at, next->first));
    pieces.push_back(mapped(*next, end));
    at = next->end();
  }
  return pieces;
}

Result<FileBlock> Engine::seek_data(InodeId id, FileBlock from) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(const ExtentMap* extents, this->extents(*inode));
  const uint64_t end = blocks_of(inode->size);
  for (uint64_t at = from.value; at < end;) {
    const std::optional<Extent> next = extents->next(at);
    if (!next || next->first >= end) break;
    if (!next->unwritten) return FileBlock{next->first};
    at = next->end();
  }
  return Error{ENXIO};
}

Result<FileBlock> Engine::seek_hole(InodeId id, FileBlock from) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(const ExtentMap* extents, this->extents(*inode));
  const uint64_t end = blocks_of(inode->size);
  if (from.value >= end) return Error{ENXIO};
  uint64_t at = from.value;
  while (at < end) {
    const std::optional<Extent> next = extents->next(at);
    if (!next || next->first > at || next->unwritten) break;
    at = next->end();
  }
  return FileBlock{std::min(at, end)};
}

// ---- Changing the current view

// Lets runs that left the overlay be trimmed. Most of them were written, for a temporary file that
// was removed before it was committed.
void Engine::discard(const std::vector<ExtentMap::Dropped>& runs) {
  for (const auto& [run, committed] : runs) {
    checksums_.drop_in_flux(run.first, run.count);
    committed ? blocks_.discard_content(run) : blocks_.discard(run);
  }
}

Result<void> Engine::begin_overwrite(InodeId id, std::span<const Piece> overwritten) {
  SFS_TRY(writable());
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  pmem::Flushed cleared;
  for (const Piece& piece : overwritten) {
    if (!piece.hole) cleared += checksums_.begin_overwrite(piece.block, piece.length);
  }
  if (!cleared.none()) region_.fence(std::move(cleared));
  return {};
}

Result<void> Engine::finish_write(InodeId id, const WriteResult& result, SlotRoom& room) {
  SFS_TRY(writable());
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  if (!result.added.empty()) {
    SFS_ASSIGN(ExtentMap * extents, this->extents(*inode));
    // The commit may use the reserve. A write that is likely to need it fails now instead.
    const auto fills_hole = [&](const WriteResult::NewPiece& piece) {
      const std::optional<Extent> there = extents->next(piece.first.value);
      return !there || there->first > piece.first.value;
    };
    if (extents->needs_unit() && heap_.scarce() && std::ranges::any_of(result.added, fills_hole))
      return Error{ENOSPC, "metadata heap"};
    for (const WriteResult::NewPiece& piece : result.added) {
      discard(extents->add(
          {piece.first.value, piece.length, piece.block.value, piece.vstream.value, false},
          result.epoch));
    }
    extents->absorb(room);
  }
  store_new_checksums(result, *inode);
  if (result.end_offset > inode->size) {
    inode->size = result.end_offset;
    if (inode->growth.empty() || inode->growth.back().epoch != result.epoch) {
      inode->growth.push_back({result.epoch, inode->size});
    }
    inode->growth.back().size = inode->size;
  }
  if (result.times == WriteTimes::kNow) inode->mtime = inode->ctime = now();
  inode->attributes_dirty = true;
  return {};
}

// Stores the checksums of all new blocks at once, because no committed extent names the blocks yet
// and no checksum of an earlier owner may stay. Checksums of overwritten blocks wait for the flush.
void Engine::store_new_checksums(const WriteResult& result, Inode& inode) {
  if (!geometry_.checksums()) return;
  std::vector<std::vector<uint32_t>> fresh;
  fresh.reserve(result.added.size());
  for (const auto& piece : result.added) fresh.emplace_back(piece.length);
  BlockNo from{0};
  std::vector<uint32_t> overwritten;
  const auto finish = [&] {
    if (overwritten.empty()) return;
    checksums_.finish_overwrite(from, overwritten, result.epoch);
    Inode::Overwritten* run = inode.overwritten.empty() ? nullptr : &inode.overwritten.back();
    if (run != nullptr && run->epoch == result.epoch &&
        run->first.value + run->count == from.value) {
      run->count += overwritten.size();
    } else {
      inode.overwritten.push_back({from, overwritten.size(), result.epoch});
    }
    overwritten.clear();
  };
  size_t last = 0;  // checksums come in the order of the pieces
  for (const WriteResult::BlockChecksum& checksum : result.checksums) {
    const auto holds = [&](size_t i) {
      const uint64_t first = result.added[i].block.value;
      return checksum.block.value >= first && checksum.block.value - first < fresh[i].size();
    };
    for (size_t tried = 0; tried < fresh.size() && !holds(last); ++tried) {
      last = (last + 1) % fresh.size();
    }
    if (!fresh.empty() && holds(last)) {
      fresh[last][checksum.block.value - result.added[last].block.value] =
          known_checksum(checksum.crc);
      continue;
    }
    if (from.value + overwritten.size() != checksum.block.value) finish();
    if (overwritten.empty()) from = checksum.block;
    overwritten.push_back(checksum.crc);
  }
  finish();
  for (size_t i = 0; i < fresh.size(); ++i) checksums_.store(result.added[i].block, fresh[i]);
}

Result<void> Engine::set_size(InodeId id, uint64_t size) {
  SFS_TRY(writable());
  if (size > kMaxFileBlocks * kBlockSize) return Error{EFBIG};
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(ExtentMap * extents, this->extents(*inode));
  if (size < inode->size) discard(extents->remove(blocks_of(size), kMaxFileBlocks));
  // Growth by earlier writes still waits for their epochs.
  inode->ready_size = std::min(inode->ready_size, size);
  for (Inode::Growth& growth : inode->growth) growth.size = std::min(growth.size, size);
  if (size > inode->size)
    (inode->growth.empty() ? inode->ready_size : inode->growth.back().size) = size;
  inode->size = size;
  inode->mtime = inode->ctime = now();
  inode->attributes_dirty = true;
  return {};
}

Result<void> Engine::remove_range(InodeId id, FileBlock first, uint64_t count) {
  SFS_TRY(writable());
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(ExtentMap * extents, this->extents(*inode));
  if (first.value < kMaxFileBlocks && count > 0) discard(extents->remove(first.value, count));
  inode->mtime = inode->ctime = now();
  inode->attributes_dirty = true;
  return {};
}

bool Engine::dirty(InodeId id) {
  const InodeRef inode = cache_.find(id);  // dirty inodes stay in memory
  if (!inode) return false;
  const std::unique_lock lock(inode->mutex);
  return inode->alive && inode->dirty();
}

bool Engine::needs_commit(InodeId id) {
  const InodeRef inode = cache_.find(id);
  if (!inode) return false;
  const std::unique_lock lock(inode->mutex);
  return inode->alive && inode->changed_place();
}

// ---- Committing it

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
                     inode.extents->unwritten_from(blocks_of(next.size));
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
