// A collapse or an insertion of a range that takes more than one record: which of a file's extent
// slots still hold their old position.
//
//   collapse:  settled │ what goes, `count` blocks │ waiting, to move down
//                       border - count ^      border ^
//   insert:    settled │ waiting, to move up │ nothing, `count` blocks │ settled
//                   at ^              border ^         border + count ^
//
// Slots are moved one by one, from the border away, and the border follows in the same record. So
// any slot's position says which it is, and whoever reads slots finds the file as it will be. No
// slot lies across a border.
//
// Thread safety: values. What a crash leaves: the inode's first record has its new size, its new
// count of blocks and this intent; reading the file goes on with it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "fuse-fs/meta/layout.h"

namespace streamfs::meta {

struct Extent;

// In blocks of the file, as they were before.
struct Shift {
  bool insert = false;
  uint64_t at = 0, count = 0;
  uint64_t border = 0;

  // The extent as it will be; nothing, if it goes. Errors: EIO where no shift leaves it.
  Result<std::optional<Extent>> settled(const Extent& found) const;
};

// The one an inode says it is in.
std::optional<Shift> shift_of(const InodeImage& image);
// Says it, or that there is none.
void put_shift(InodeImage& image, const std::optional<Shift>& shift);
// False where the image says an impossible one.
bool shift_possible(const InodeImage& image);

}  // namespace streamfs::meta
