// The end of an inode: the last reference goes, its blocks and units are freed in bounded records.
//
//   named ──last name──► orphan ──last reference──► blocks and chains, a few units a record ──►
//   gone
//
// After a crash: the inode is on the orphan list until its last record. Each record before that one
// shortens its chain, so the next mount goes on where this one stopped.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine_impl.h"

namespace streamfs::meta {
namespace {

constexpr size_t kUnitsPerRecord = 6;  // 126 runs each; a record takes fewer than 1000

}  // namespace

bool Engine::forget(InodeId id, uint64_t count) {
  const auto inode = lock_inode(id);
  const uint64_t left = cache_.drop_lookups(id, count);
  if (!inode || left != 0 || (*inode)->committed.nlink != 0) return false;
  if (writable().ok()) discard_current(**inode);  // its blocks are freed later
  return true;
}

Result<void> Engine::free_orphan(InodeId id) {
  SFS_TRY(writable());
  const auto locked = lock_inode(id);
  if (!locked) return locked.error().code == ESTALE ? Result<void>() : locked.error();
  Inode& inode = **locked;
  if (inode.committed.nlink != 0 || cache_.drop_lookups(id, 0) != 0) {
    return Error{EBUSY, "inode still has names or references"};
  }
  discard_current(inode);
  if (is_directory(inode.committed)) {
    SFS_TRY(drop_chain(inode, UnitKind::kDirectory));
  } else if (is_regular(inode.committed)) {
    SFS_TRY(drop_chain(inode, UnitKind::kExtents));
  }
  SFS_TRY(drop_blob(inode, &InodeImage::xattr));
  SFS_TRY(drop_blob(inode, &InodeImage::symlink));
  return drop_inode(inode);
}

// Drops the current view, which will never be committed.
void Engine::discard_current(Inode& inode) {
  if (inode.extents) {
    discard(inode.extents->overlay());
    inode.extents.reset();
    inode.uncommitted = {};
  }
  for (const auto& run : inode.overwritten) checksums_.drop_in_flux(run.first, run.count);
  inode.overwritten.clear();
  inode.growth.clear();
  inode.attributes_dirty = false;
  inode.directory.reset();
}

// Takes units off the front of the inode's chain: extents give their blocks back, the units
// become dirty.
Result<void> Engine::drop_chain(Inode& inode, UnitKind kind) {
  while (inode.committed.chain != 0) {
    Change change = this->change();
    InodeImage& next = change.next(inode);
    std::vector<uint64_t> units;
    std::vector<BlockRun> runs;
    while (next.chain != 0 && units.size() < kUnitsPerRecord) {
      const uint64_t unit = next.chain;
      const bool again = std::ranges::find(units, unit) != units.end();
      if (again || !heap_.is_unit(unit, kind, inode.id)) {
        return Error{EIO, "broken chain of heap units"};
      }
      if (kind == UnitKind::kExtents) SFS_TRY(collect_runs(unit, runs));
      next.chain = read_header(region_, unit).next;
      units.push_back(unit);
    }
    uint64_t freed = 0;
    for (const BlockRun& run : runs) freed += run.count;
    set_block_count(next, block_count(next) - std::min(freed, block_count(next)));
    SFS_TRY(commit_drop(change, units, runs));
  }
  return {};
}

Result<void> Engine::collect_runs(uint64_t unit, std::vector<BlockRun>& runs) const {
  for (uint64_t i = 0; i < kExtentSlotsPerUnit; ++i) {
    const uint64_t at = unit + sizeof(UnitHeader) + i * sizeof(ExtentSlot);
    const Result<Extent> extent = read_extent(region_, geometry_, at);
    if (!extent.ok() && extent.error().code == ENOENT) continue;
    if (!extent.ok()) return extent.error();
    runs.push_back({BlockNo{extent->block}, extent->length});
  }
  return {};
}

Result<TxId> Engine::commit_drop(Change& change, const std::vector<uint64_t>& units,
                                 const std::vector<BlockRun>& runs) {
  for (const uint64_t unit : units) heap_.put_kind(change.tx, unit, UnitKind::kDirty);
  for (const BlockRun& run : runs) {
    blocks_.about_to_free(run);
    change.tx.run(run.first, run.count, RunKind::kFree);
  }
  SFS_ASSIGN(const TxId committed, change.commit());
  for (const uint64_t unit : units) heap_.freed(unit, committed);
  for (const BlockRun& run : runs) {
    checksums_.drop_in_flux(run.first, run.count);
    blocks_.committed_free(run, committed);
  }
  return committed;
}

// Frees a blob in one record: it has at most kMaxBlobUnits (17) units.
Result<void> Engine::drop_blob(Inode& inode, uint64_t InodeImage::* pointer) {
  if (inode.committed.*pointer == 0) return {};
  SFS_ASSIGN(const auto units, heap_.chain(inode.committed.*pointer, UnitKind::kBlob, inode.id));
  if (units.size() > kMaxBlobUnits) return Error{EIO, "blob too long"};
  Change change = this->change();
  change.next(inode).*pointer = 0;
  SFS_TRY(commit_drop(change, units, {}));
  return {};
}

// Frees the inline extents, the inode's slot and its place among the orphans.
Result<void> Engine::drop_inode(Inode& inode) {
  Change change = this->change();
  std::vector<BlockRun> runs;
  for (size_t slot = 0; slot < kInlineExtents; ++slot) {
    if (!is_regular(inode.committed) || (inode.committed.flags & (kInlineExtent0 << slot)) == 0) {
      continue;
    }
    SFS_ASSIGN(const Extent extent, decode_extent(inline_slot(inode.committed, slot), geometry_));
    runs.push_back({BlockNo{extent.block}, extent.length});
  }
  change.tx.patch(inode_offset(inode.id), 0);
  orphans_.put_remove(change.tx, inode.id);
  InodeSlots::Emptied unit = slots_.emptied_by(inode.id);
  unit.put(change.tx);
  SFS_ASSIGN(const TxId committed, commit_drop(change, {}, runs));
  inode.alive = false;
  cache_.erase(inode);
  orphans_.removed(inode.id);
  if (unit)
    unit.keep(committed);
  else
    slots_.freed(inode.id, committed);
  return {};
}

}  // namespace streamfs::meta
