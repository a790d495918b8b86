// What is remembered of each page of the device, in eight bytes: when it was last written, how long
// what it held before lived, and how that died.
// Thread safety: none. Crash: memory only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "learning/sparse_array.h"

namespace streamfs::learning {

struct PageLife {
  uint32_t written = 0;     // clock in pages, its low half: enough for 16 TiB of writes
  uint8_t last = 0;         // 1 + half_log2 of the last lifetime that ended; 0: none has
  uint8_t before = 0;       // the one before
  uint8_t trim_length = 0;  // 1 + half_log2 of the trim that ended it; 0: an overwrite, or nothing
  bool ever : 1 = false;    // written
  bool alive : 1 = false;

  // Pages written since; 0 if it never was.
  uint32_t age(uint64_t clock) const { return ever ? static_cast<uint32_t>(clock) - written : 0; }
};
static_assert(sizeof(PageLife) == 8);

using PageHistory = SparseArray<PageLife, size_t{1} << 16>;

}  // namespace streamfs::learning
