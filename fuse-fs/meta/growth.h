// Plans growth: a larger geometry for larger devices, in which nothing moves.
//
// The new part of META goes to the maps of blocks and units, as far as they need it, and the rest
// to the heap. The intent log, if there is one, gets a sixteenth if that makes it at least an
// eighth larger. A region gets a further segment of it, or its last segment becomes longer. If a
// map has to grow, maps grow ahead of need where there is room. If planned_meta is larger than the
// new META, the heap map becomes long enough for it. Otherwise all maps become long enough for a
// DATA and a heap half as large again as before. The few segments of a region therefore last for
// many small growths.
//
// Thread safety: pure functions, but for find_log_room. Nothing is written here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "fuse-fs/meta/layout.h"

namespace streamfs::meta {

struct GrowthRequest {
  uint64_t data_blocks = 0;                  // size of DATA now
  uint64_t meta_bytes = 0;                   // size of META's medium now
  bool extensible = false;                   // META is a file, which can be made longer
  std::optional<uint64_t> wanted_meta = {};  // the size of META that was asked for
  uint64_t planned_meta = 0;                 // a size that META may grow to later
  uint64_t spare_blocks = 0;                 // old blocks that the log may take ahead of need
  uint64_t snapshot_blocks = 0;              // capacity of a snapshot area; 0: no metadata log
  // Reserves so many old blocks for the log in one run; nullopt if there is none. Called only if
  // the new blocks of DATA are too few: first for more blocks than the log needs now and, if that
  // fails, for as many as it needs. The caller gives the run back if plan_growth() fails.
  std::function<std::optional<BlockRange>(uint64_t blocks)> find_log_room = {};
};

// Returns the superblock after the growth; its sizes are the present ones if there is nothing to
// do. Without wanted_meta, META takes all of its medium; a META file becomes longer in proportion
// to DATA, so that as many files fit per block of data as before.
// Errors: EOPNOTSUPP, it would shrink; ENOSPC, META or DATA is too small (the message says how much
// is needed) or no segment is left; EFBIG, DATA is too large.
Result<Superblock> plan_growth(const Superblock& now, const GrowthRequest& request);

// Returns the superblock with an intent log of `bytes`, in whole segments. The log gets the spare
// room of the rings' region (spare_ring_bytes) and then the first part of META's medium that the
// filesystem does not use. Requires: `now` has no intent log.
// Errors: ENOSPC, the medium is too short (the message says how much is missing) or no segment is
// left.
Result<Superblock> plan_intent_log(const Superblock& now, uint64_t medium_bytes, uint64_t bytes);

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
