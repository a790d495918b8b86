// The numbers that only one FTL has, in the image's shared state. A reset leaves them as they are.
// Thread safety: values and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ssd/geometry.h"

namespace streamfs::ssd {

inline constexpr size_t kFtlCounts = 4;
using FtlCounts = std::array<uint64_t, kFtlCounts>;

// Indices in FtlCounts.
enum EmmcCount : uint8_t { kContextsWritten, kContextPages, kBlocksRead, kStreamsOn };
// kLiveVStreams is brought up to date at power-up and at each remap.
enum VStreamCount : uint8_t { kLiveVStreams, kRemaps };
enum HybridCount : uint8_t { kWordsRead, kHybridSpareAreasRead };
enum LogBlockCount : uint8_t {
  kMergesSwitched,
  kMergesPartial,
  kMergesFull,
  kLogBlockSpareAreasRead
};

// Returns the names of the counts, keys of JSON. Numbers without a name are unused.
constexpr std::array<std::string_view, kFtlCounts> ftl_count_names(FtlKind ftl) {
  switch (ftl) {
    case FtlKind::kEmmc:
      return {"contexts_written", "context_pages_written", "blocks_read_at_power_up", "streams_on"};
    case FtlKind::kVStream:
      return {"live_vstreams", "remaps"};
    case FtlKind::kHybrid:
      return {"words_read_at_power_up", "spare_areas_read_at_power_up"};
    case FtlKind::kLogBlock:
      return {"merges_switched", "merges_partial", "merges_full", "spare_areas_read_at_power_up"};
    case FtlKind::kPageMap:
      break;
  }
  return {};
}

}  // namespace streamfs::ssd
