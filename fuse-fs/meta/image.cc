#include "fuse-fs/meta/image.h"

#include <cstdint>
#include <span>

#include "base/checksum.h"
#include "base/types.h"

namespace streamfs::meta {
namespace {

template <typename T>
uint32_t checksum_without_itself(T object) {
  object.checksum = 0;
  return crc32c(std::as_bytes(std::span(&object, 1)));
}

}  // namespace

uint32_t superblock_checksum(const Superblock& super) {
  return checksum_without_itself(super);
}
uint32_t extent_checksum(const ExtentSlot& slot) {
  return checksum_without_itself(slot);
}
uint32_t label_checksum(const DataLabel& label) {
  return checksum_without_itself(label);
}

uint32_t inode_checksum(const InodeImage& image) {
  InodeImage copy = image;
  copy.checksum = 0;
  const bool inline_symlink = (image.flags & kInlineSymlink) != 0;
  const auto bytes = std::as_bytes(std::span(&copy, 1));
  const uint32_t crc =
      crc32c(bytes.first(kInodeBodyWords * kWordSize + (inline_symlink ? kInlineSymlinkMax : 0)));
  if (image.inline_xattr_bytes == 0) return crc;
  return crc32c(std::as_bytes(inline_xattr_words(copy)), crc);
}

}  // namespace streamfs::meta
