// Measures how active each 1 MiB chunk of the device is, compared to the others (Vishwakarma 2019,
// future work): how much of it died lately, how long ago the last death was, the intervals between
// deaths, and the share of deaths by trim. Counts halve every `half_life_pages` pages written. Only
// chunks with deaths are kept; at `chunks_max` of them, the least active half is dropped.
// Thread safety: none. Crash: memory only.
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
    "relative",         // pages overwritten lately ÷ average of the chunks that are kept
    "recency_pages",    // pages written to the device since the last death
    "interval_pages",   // between deaths: geometric mean, lately
    "interval_spread",  // standard deviation of log2 of the intervals
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
  // Counts the deaths by overwrite and trim. Unbelievable records are left out, and a trim of more
  // than kTrimPagesMax pages counts no death.
  void feed(std::span<const wire::TelemetryRecord> records);
  ChunkViews view() const;
  size_t size() const { return chunks_.size(); }

 private:
  // A larger trim empties a device or a file system and tells nothing of how data dies there.
  static constexpr uint32_t kTrimPagesMax = 1U << 16;
  static constexpr float kAlpha = 0.125F;  // weight of the newest interval in mean and variance
  struct Chunk {
    uint64_t last = 0;
    float overwritten = 0, trimmed = 0;  // pages, as of `last`
    float interval = -1, variance = 0;   // of log2 of the intervals; interval < 0: none yet
  };
  using Chunks = std::unordered_map<uint32_t, Chunk>;
  // A chunk takes 64 bytes with the node's link, the allocator's overhead and two hash buckets.
  static_assert(sizeof(Chunks::value_type) + 4 * sizeof(void*) <= 64);

  void died(const wire::TelemetryRecord& record);
  void died(Chunk& chunk, float pages, bool trimmed) const;
  float kept(const Chunk& chunk) const;  // the share of its counts that is left by now
  ChunkFeatures features(const Chunk& chunk) const;
  void evict();

  double half_life_pages_;
  size_t chunks_max_;
  uint64_t clock_ = 0;
  Chunks chunks_;
};

}  // namespace streamfs::classifier
