// Scrubbing: reads all that META holds of an inode again, and checks it.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/copies.h"
#include "fuse-fs/meta/engine_impl.h"
#include "fuse-fs/meta/layout.h"

namespace streamfs::meta {

std::vector<InodeId> Engine::inodes_after(InodeId after, size_t most) {
  std::vector<InodeId> found;
  const uint64_t first = after.value + 1;
  uint64_t unit = geometry_.unit_of(inode_offset(after)).value_or(0);
  for (; unit < heap_.total() && found.size() < most; ++unit) {
    const uint64_t base = geometry_.unit_offset(unit) / kCellSize;
    if (heap_.kind(unit) != UnitKind::kInodes) continue;
    for (uint64_t slot = std::max(base, first); slot < base + kInodesPerUnit; ++slot) {
      if (published(region_, inode_offset(InodeId{slot}))) found.push_back(InodeId{slot});
    }
  }
  return found;
}

Result<void> Engine::verify(InodeId id) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(const InodeImage image, read_inode(heap_, id, Look::kAll));
  if (is_directory(image)) SFS_TRY(verify_directory(id, image));
  if (is_regular(image)) SFS_TRY(verify_extents(id, image));
  SFS_TRY(verify_blob(id, image.symlink));
  SFS_TRY(verify_blob(id, image.xattr));
  if (is_symlink(image)) SFS_TRY(target_of(*inode));
  SFS_TRY(xattrs(*inode));
  return {};
}

Result<void> Engine::verify_extents(InodeId id, const InodeImage& image) {
  SFS_ASSIGN(const auto units, heap_.chain(image.chain, UnitKind::kExtents, id, Look::kAll));
  for (const uint64_t unit : units) {
    for (uint64_t i = 0; i < kExtentSlotsPerUnit; ++i) {
      const uint64_t at = unit + sizeof(UnitHeader) + i * sizeof(ExtentSlot);
      const auto extent = read_extent(region_, geometry_, at, Look::kAll);
      if (!extent.ok() && extent.error().code != ENOENT) return extent.error();
    }
  }
  UncommittedBlocks none;
  SFS_TRY(ExtentMap::load(heap_, id, image, none));
  return {};
}

Result<void> Engine::verify_blob(InodeId id, uint64_t first) const {
  SFS_ASSIGN(const auto units, heap_.chain(first, UnitKind::kBlob, id, Look::kAll));
  for (const uint64_t unit : units) SFS_TRY(read_blob_unit(region_, unit, Look::kAll));
  return {};
}

Result<void> Engine::verify_directory(InodeId id, const InodeImage& image) const {
  SFS_ASSIGN(const auto units, heap_.chain(image.chain, UnitKind::kDirectory, id, Look::kAll));
  for (const uint64_t unit : units) {
    for (uint32_t index = 0; index < kDirSlotsPerUnit;) {
      const Result<DirEntry> entry = decode_entry(region_, unit, index, Look::kAll);
      if (!entry.ok() && entry.error().code != ENOENT) return entry.error();
      index += entry.ok() ? entry->slots : 1;
    }
  }
  return {};
}

Result<void> Engine::verify_maps() {
  std::string where;
  for (const auto& [kind, name] : kMaps) {
    const uint64_t words = differing_words(region_, geometry_, kind);
    if (words > 0) where += (where.empty() ? "" : ", ") + std::to_string(words) + " of " + name;
  }
  if (where.empty()) return {};
  return Error{EIO, "the copies of META differ in words: " + where + "; fsck.streamfs -y repairs"};
}

}  // namespace streamfs::meta
