// How often is each range of the device overwritten, compared with the device's average?
// (Vishwakarma 2019, future work.) Counts of overwrites per 1 MiB chunk that halve every
// `half_life_pages` of device clock, and when the chunk was last overwritten. Sparse: 24 bytes of
// payload an active chunk; the least active half is dropped when there are too many.
// Thread safety: none. Crash: nothing persistent.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/wire/telemetry.h"

namespace streamfs::classifier {

inline constexpr uint32_t kChunkPages = 256;

struct ChunkView {
  uint64_t chunk = 0;
  double relative = 0;       // overwrites lately ÷ average of the active chunks
  double recency_pages = 0;  // device clock since the last overwrite
};

class ChunkCounter {
 public:
  ChunkCounter(double half_life_pages, size_t chunks_max);
  void feed(std::span<const wire::TelemetryRecord> records);
  std::vector<ChunkView> view() const;  // by chunk number
  size_t size() const { return chunks_.size(); }

 private:
  struct Chunk {
    double count = 0;  // as of `last`
    uint64_t last = 0;
  };
  double now_count(const Chunk& chunk) const;
  void overwrite(uint64_t chunk, uint64_t pages);
  void evict();

  double half_life_pages_;
  size_t chunks_max_;
  uint64_t clock_ = 0;
  std::unordered_map<uint64_t, Chunk> chunks_;
};

}  // namespace streamfs::classifier
