#include "fuse-fs/meta/shift.h"

#include <cerrno>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "fuse-fs/meta/extent_map.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/layout.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kInsertBit = uint64_t{1} << 63;

}  // namespace

std::optional<Shift> shift_of(const InodeImage& image) {
  if ((image.flags & kShifting) == 0) return std::nullopt;
  return Shift{(image.parent & kInsertBit) != 0, static_cast<uint32_t>(image.rdev),
               image.rdev >> 32, image.parent & ~kInsertBit};
}

void put_shift(InodeImage& image, const std::optional<Shift>& shift) {
  image.flags = static_cast<uint16_t>(shift ? image.flags | kShifting : image.flags & ~kShifting);
  image.rdev = shift ? shift->at | shift->count << 32 : 0;
  image.parent = shift ? shift->border | (shift->insert ? kInsertBit : 0) : 0;
}

bool shift_possible(const InodeImage& image) {
  const std::optional<Shift> shift = shift_of(image);
  if (!shift) return true;
  const uint64_t least = shift->insert ? shift->at : shift->at + shift->count;
  return is_regular(image) && shift->count > 0 && shift->border >= least &&
         shift->border <= kMaxFileBlocks;
}

Result<std::optional<Extent>> Shift::settled(const Extent& found) const {
  Extent out = found;
  if (insert) {
    if (found.end() <= at || found.first >= border + count) return std::optional(out);
    if (found.first < at || found.end() > border || found.end() + count > kMaxFileBlocks)
      return Error{EIO, "extent across what is inserted"};
    out.first += count;
    return std::optional(out);
  }
  if (found.end() <= border - count) return std::optional(out);
  if (found.first >= border) {
    out.first -= count;
    return std::optional(out);
  }
  if (found.first < border - count || found.end() > border)
    return Error{EIO, "extent across what is taken out"};
  return std::optional<Extent>();
}

}  // namespace streamfs::meta
