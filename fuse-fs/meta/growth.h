// Growing: from larger devices to a larger geometry, in which nothing has moved.
//
// What is new of META becomes heap, after what the maps of blocks and units need; a region takes a
// further segment of it, or its last one becomes longer. Whenever a map has to grow, all of them
// do, for half as much again where there is room: so the few segments last for many small growths.
// Thread safety: pure functions, but for find_log_room. Crash: nothing is written here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "fuse-fs/meta/layout.h"

namespace streamfs::meta {

struct GrowthRequest {
  uint64_t data_blocks = 0;                  // that DATA has now
  uint64_t meta_bytes = 0;                   // that META's medium has now
  bool extensible = false;                   // META is a file, which can be made longer
  std::optional<uint64_t> wanted_meta = {};  // its size, if someone said one
  uint64_t planned_meta = 0;                 // a size that META may grow to later
  uint64_t spare_blocks = 0;                 // of the old blocks, that the log may take ahead
  uint64_t snapshot_blocks = 0;              // capacity of a snapshot area; 0: no metadata log
  // Finds so many blocks for the log among the old ones, in one run, and holds them; asked only if
  // the new blocks of DATA are too few, first for more than the least.
  std::function<std::optional<BlockRange>(uint64_t blocks)> find_log_room = {};
};

// The superblock after growing to that; sizes as they are, if there is nothing to do. Without a
// wanted size META becomes what it can, and a file long enough for as many files per block of data
// as before. Errors: EOPNOTSUPP (it would shrink), ENOSPC (META or DATA is too small: how much is
// needed; or no segment is left), EFBIG.
Result<Superblock> plan_growth(const Superblock& now, const GrowthRequest& request);

// Makes `to` as large as `from`, and changes nothing else in it.
inline void take_size(Superblock& to, const Superblock& from) {
  to.meta_size = from.meta_size;
  to.data_blocks = from.data_blocks;
  std::ranges::copy(from.log_extensions, to.log_extensions);
  std::ranges::copy(from.regions, to.regions);
}
inline bool same_size(const Superblock& a, const Superblock& b) {
  return a.data_blocks == b.data_blocks && a.meta_size == b.meta_size;
}

}  // namespace streamfs::meta
