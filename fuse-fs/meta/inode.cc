#include "fuse-fs/meta/inode.h"

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

bool known_type(uint16_t mode) {
  switch (mode & 0170000) {
    case 0010000:
    case 0020000:
    case 0040000:
    case 0060000:
    case 0100000:
    case 0120000:
    case 0140000:
      return true;
    default:
      return false;
  }
}

constexpr uint16_t kKnownFlags = kInlineExtent0 | kInlineExtent1 | kInlineSymlink | kTruncating |
                                 kHintedVStream | kHasCapability | kExtending;

}  // namespace

Timestamp unpack_time(uint64_t packed) {
  return {static_cast<int64_t>(packed >> 30) - kTimeBias,
          static_cast<uint32_t>(packed & ((uint64_t{1} << 30) - 1))};
}

InodeImage load_image(const pmem::Region& region, InodeId id) {
  InodeWords words{};
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = region.load(inode_offset(id) + i * kWordSize);
  return std::bit_cast<InodeImage>(words);
}

const char* image_problem(const InodeImage& image, InodeId id) {
  if (image.checksum != inode_checksum(image)) return "wrong checksum";
  if (image.self != id.value) return "wrong number in itself";
  if (!known_type(image.mode)) return "unknown type";
  if ((image.flags & ~kKnownFlags) != 0) return "unknown flags";
  if ((image.flags & kInlineSymlink) != 0 &&
      (!is_symlink(image) || image.size > kInlineSymlinkMax)) {
    return "impossible inline symlink";
  }
  if (image.inline_xattr_bytes > inline_xattr_words(image).size_bytes() ||
      (image.inline_xattr_bytes != 0 && image.xattr != 0)) {
    return "impossible inline attributes";
  }
  return nullptr;
}

namespace {

Result<InodeImage> checked_image(const pmem::Region& region, InodeId id) {
  const InodeImage image = load_image(region, id);
  if (std::bit_cast<InodeWords>(image)[0] == 0) return Error{ESTALE, "no such inode"};
  if (const char* problem = image_problem(image, id)) {
    return Error{EIO, "inode " + std::to_string(id.value) + ": " + problem};
  }
  return image;
}

// Returns whether the inline extents are whole. They have checksums of their own, and a copy of the
// inode without damaged extents is preferred.
bool inline_extents_whole(const InodeImage& image) {
  for (size_t slot = 0; slot < kInlineExtents; ++slot) {
    if ((image.flags & (kInlineExtent0 << slot)) == 0) continue;
    const ExtentSlot extent = inline_slot(image, slot);
    if (extent.checksum != extent_checksum(extent)) return false;
  }
  return true;
}

}  // namespace

Result<InodeImage> find_inode(const pmem::Region& region, InodeId id, Look look) {
  const auto length = [](const auto&) { return kCellSize; };
  const auto whole = [id](const pmem::Region& copy) -> Result<InodeImage> {
    SFS_ASSIGN(const InodeImage image, checked_image(copy, id));
    if (!inline_extents_whole(image)) return Error{EIO, "damaged extent"};
    return image;
  };
  auto image = read_mended(region, "an inode", inode_offset(id), look, whole, length);
  if (image.ok() || image.error().code != EIO) return image;
  return read_mended(
      region, "an inode", inode_offset(id), look,
      [id](const pmem::Region& copy) { return checked_image(copy, id); }, length);
}

Result<InodeImage> read_inode(const Heap& heap, InodeId id, Look look) {
  if (!heap.is_inode_slot(id)) return Error{ESTALE, "no such inode"};
  return find_inode(heap.store().region, id, look);
}

void put_image(Transaction& tx, InodeId id, const InodeImage& committed, InodeImage& next) {
  next.checksum = inode_checksum(next);
  const auto before = std::bit_cast<InodeWords>(committed);
  const auto after = std::bit_cast<InodeWords>(next);
  for (size_t i = 0; i < after.size(); ++i) {
    if (before[i] != after[i]) tx.patch(inode_offset(id) + i * kWordSize, after[i]);
  }
}

void set_block_count(InodeImage& image, uint64_t blocks) {
  image.blocks_vstream = (image.blocks_vstream & ~kBlockCountMask) | blocks;
}

void set_vstream(InodeImage& image, VStreamId vstream, uint8_t generation, bool hinted) {
  image.blocks_vstream =
      block_count(image) | uint64_t{generation} << 40 | uint64_t{vstream.value} << 48;
  image.flags =
      static_cast<uint16_t>(hinted ? image.flags | kHintedVStream : image.flags & ~kHintedVStream);
}

uint64_t Inode::bytes() const {
  return sizeof(Inode) + (extents ? extents->bytes() : 0) + (directory ? directory->bytes() : 0);
}

void Inode::adopt_committed() {
  size = ready_size = committed.size;
  mtime = committed.mtime;
  ctime = committed.ctime;
}

uint64_t Inode::blocks() const {
  return block_count(committed) + uncommitted.added - uncommitted.removed;
}

void Inode::adopt(const InodeImage& next) {
  if (next.mtime != committed.mtime) mtime = next.mtime;
  if (next.ctime != committed.ctime) ctime = next.ctime;
  if (next.size != committed.size && !attributes_dirty) size = ready_size = next.size;
  committed = next;
}

}  // namespace streamfs::meta
