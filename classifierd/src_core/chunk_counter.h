// The activity of each range of the device, beside the others (Vishwakarma 2019, future work).
// Counts, for each 1 MiB chunk with a recent death: how often it is overwritten, how long ago that
// was, at what intervals, and how much of it goes by trim. Counts halve every `half_life_pages` of
// device clock. Sparse: the least active half is dropped when there are too many. Thread safety:
// none. Crash: nothing persistent.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/wire/model_table.h"
#include "base/wire/telemetry.h"

namespace streamfs::classifier {

using wire::kChunkPages;

// The features of a chunk, by column. NaN where nothing is known yet.
inline constexpr std::array kChunkFeatures = {
    "relative",         // pages overwritten lately ÷ average of the active chunks
    "recency_pages",    // device clock since the last death
    "interval_pages",   // between deaths: geometric mean, lately
    "interval_spread",  // standard deviation of log2 of these
    "trim_ratio",       // deaths by trim ÷ all deaths, lately
};
using ChunkFeatures = std::array<float, kChunkFeatures.size()>;

struct ChunkViews {
  std::vector<uint64_t> chunks;  // ascending
  std::vector<ChunkFeatures> features;
};

class ChunkCounter {
 public:
  ChunkCounter(double half_life_pages, size_t chunks_max);
  void feed(std::span<const wire::TelemetryRecord> records);
  ChunkViews view() const;
  size_t size() const { return chunks_.size(); }

 private:
  // A trim of more than this empties a device or a file system; it is not how data there dies.
  static constexpr uint32_t kTrimPagesMax = 1U << 16;
  static constexpr float kAlpha = 0.125F;  // of an interval, in mean and variance
  struct Chunk {
    uint64_t last = 0;
    float overwritten = 0, trimmed = 0;  // pages, as of `last`
    float interval = -1, variance = 0;   // of log2; negative: none yet
  };
  using Chunks = std::unordered_map<uint32_t, Chunk>;
  // With the node's link, what the allocator adds, and two hash buckets: 64 bytes an active chunk.
  static_assert(sizeof(Chunks::value_type) + 4 * sizeof(void*) <= 64);

  void died(const wire::TelemetryRecord& record);
  void died(Chunk& chunk, float pages, bool trimmed) const;
  float kept(const Chunk& chunk) const;  // of its counts, by now
  ChunkFeatures features(const Chunk& chunk) const;
  void evict();

  double half_life_pages_;
  size_t chunks_max_;
  uint64_t clock_ = 0;
  Chunks chunks_;
};

}  // namespace streamfs::classifier
