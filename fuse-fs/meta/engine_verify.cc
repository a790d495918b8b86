// What META holds of one inode, read again and held against its checksums and rules.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine_impl.h"
#include "fuse-fs/meta/layout.h"

namespace streamfs::meta {

std::vector<InodeId> EngineImpl::inodes_after(InodeId after, size_t most) {
  std::vector<InodeId> found;
  const uint64_t first = after.value + 1;
  uint64_t unit = geometry_.unit_of(inode_offset(after)).value_or(0);
  for (; unit < heap_.total() && found.size() < most; ++unit) {
    const uint64_t base = geometry_.unit_offset(unit) / kCellSize;
    if (heap_.kind(unit) != UnitKind::kInodes) continue;
    for (uint64_t slot = std::max(base, first); slot < base + kInodesPerUnit; ++slot) {
      if (region_.load(inode_offset(InodeId{slot})) != 0) found.push_back(InodeId{slot});
    }
  }
  return found;
}

Result<void> EngineImpl::verify(InodeId id) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(const InodeImage image, read_inode(heap_, id));
  if (is_directory(image)) SFS_TRY(verify_directory(id, image));
  if (is_regular(image)) SFS_TRY(ExtentMap::load(heap_, id, image));
  if (is_symlink(image)) SFS_TRY(target_of(*inode));
  SFS_TRY(xattrs(*inode));
  return {};
}

Result<void> EngineImpl::verify_directory(InodeId id, const InodeImage& image) const {
  SFS_ASSIGN(const auto units, heap_.chain(image.chain, UnitKind::kDirectory, id));
  for (const uint64_t unit : units) {
    for (uint32_t index = 0; index < kDirSlotsPerUnit;) {
      if (region_.load(slot_offset(unit, index)) == 0) {
        ++index;
        continue;
      }
      SFS_ASSIGN(const DirEntry entry, decode_entry(region_, unit, index));
      index += entry.slots;
    }
  }
  return {};
}

}  // namespace streamfs::meta
