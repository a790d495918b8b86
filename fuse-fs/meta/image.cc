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
  const uint64_t inline_bytes = (image.flags & kInlineSymlink) != 0 ? kInlineSymlinkMax : 0;
  const auto bytes = std::as_bytes(std::span(&copy, 1));
  return crc32c(bytes.first(kInodeBodyWords * kWordSize + inline_bytes));
}

}  // namespace streamfs::meta
