// Computes checksums of objects in META. Each covers exactly the words that carry meaning.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "fuse-fs/meta/layout.h"

namespace streamfs::meta {

// Returns the part of the inline area that extended attributes may take: all of it, the part behind
// the extents in a regular file, or nothing if there is an inline symlink.
template <typename Image>  // InodeImage, const or not
auto inline_xattr_words(Image& image) {
  const bool regular = (image.mode & 0170000) == 0100000;
  const std::span all(image.inline_area);
  if ((image.flags & kInlineSymlink) != 0) return all.subspan(all.size());
  return all.subspan(regular ? kInlineXattrWord - kInodeBodyWords : 0);
}

uint32_t superblock_checksum(const Superblock& super);
uint32_t inode_checksum(const InodeImage& image);
uint32_t extent_checksum(const ExtentSlot& slot);
uint32_t label_checksum(const DataLabel& label);

}  // namespace streamfs::meta
