// Reading objects that know whether they are whole from a META that may be kept twice: the one
// place where damage in one copy is mended from the other.
//
// Thread safety: as the object's; whoever reads it holds what keeps it from changing.
// What a crash leaves: the damage, or a part of it; the next read mends it again.
#pragma once

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::meta {

// A word that publishes an object, in any copy: what one side lost is not free.
inline bool published(const pmem::Region& region, uint64_t offset) {
  for (size_t copy = 0; copy < region.copies(); ++copy) {
    if (region.copy(copy).load(offset) != 0) return true;
  }
  return false;
}

// Takes the bytes of copy `from` for the right ones.
inline void mend(const pmem::Region& region, const char* what, size_t from, uint64_t offset,
                 uint64_t length) {
  if (!region.equalise(from, offset, length)) return;
  region.count_mended();
  spdlog::warn("META: {} at offset {} was damaged in one copy, and is mended from the other", what,
               offset);
}

// Whether a read stops at a first copy that is whole, as all do but a scrub's and a check's, which
// also mend the others.
enum class Look : uint8_t { kFirst, kAll };

// read(copy) returns a Result: EIO says damaged, any other error that nothing is there.
// length(result): how many bytes that result was read from. A whole object counts for more than
// none, and none for more than a damaged one.
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
