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
enum VStreamCount : uint8_t { kLiveVStreams, kRemaps };

// Returns the names of the counts, keys of JSON. Numbers without a name are unused.
constexpr std::array<std::string_view, kFtlCounts> ftl_count_names(FtlKind ftl) {
  switch (ftl) {
    case FtlKind::kEmmc:
      return {"contexts_written", "context_pages_written", "blocks_read_at_power_up", "streams_on"};
    case FtlKind::kVStream:
      return {"live_vstreams", "remaps"};
    case FtlKind::kPageMap:
      break;
  }
  return {};
}

}  // namespace streamfs::ssd
