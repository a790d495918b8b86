// The engine's part for the data path: maps of files, and changes that wait for a device flush.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

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

}  // namespace streamfs::meta
