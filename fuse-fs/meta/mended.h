// Reads objects that have checksums from a META that may be kept twice, and mends a damaged copy
// from the other.
//
// Thread safety: the object's. Requires: the caller keeps the object from changing meanwhile.
// After a crash: the damage, or a part of it, is still there; the next read mends it.
#pragma once

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::meta {

// Returns whether any copy publishes an object at this word. An object that one copy has lost is
// not free space.
inline bool published(const pmem::Region& region, uint64_t offset) {
  for (size_t copy = 0; copy < region.copies(); ++copy) {
    if (region.copy(copy).load(offset) != 0) return true;
  }
  return false;
}

// Copies these bytes from copy `from` to the other copy, with a fence, and logs that. Does nothing
// if they are equal or only one copy is in use.
inline void mend(const pmem::Region& region, const char* what, size_t from, uint64_t offset,
                 uint64_t length) {
  if (!region.equalise(from, offset, length)) return;
  region.count_mended();
  spdlog::warn("META: {} at offset {} was damaged in one copy, and is mended from the other", what,
               offset);
}

// kFirst: a read stops at the first copy that is whole. kAll: it also mends the other copies;
// scrubs and checks do that.
enum class Look : uint8_t { kFirst, kAll };

// Reads an object from a copy that has it whole. read(copy) returns a Result: EIO means that the
// object is damaged, any other error that nothing is there. length(result) returns how many bytes
// that result was read from. The order of preference among copies: a whole object, no object, a
// damaged object.
template <typename Read, typename Length>
auto read_mended(const pmem::Region& region, const char* what, uint64_t offset, Look look,
                 Read&& read, Length&& length) {
  const auto worth = [](const auto& result) {
    return result.ok() ? 2 : result.error().code == EIO ? 0 : 1;
  };
  const size_t copies = region.copies();  // before the first turns out to have lost a page
  auto found = read(region.copy(0));
  for (size_t copy = 1; copy < copies; ++copy) {
    if (found.ok() && look == Look::kFirst) break;
    auto other = read(region.copy(copy));
    if (worth(other) > worth(found)) {
      mend(region, what, copy, offset, length(other));
      return other;
    }
    const bool all = look == Look::kAll;
    if (all && (found.ok() || worth(found) > worth(other)))
      mend(region, what, 0, offset, length(found));
  }
  return found;
}

}  // namespace streamfs::meta
