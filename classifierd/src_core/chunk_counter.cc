#include "classifierd/src_core/chunk_counter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/wire/record_check.h"

namespace streamfs::classifier {

using wire::TelemetryKind;
using wire::TelemetryRecord;

ChunkCounter::ChunkCounter(double half_life_pages, size_t chunks_max)
    : half_life_pages_(std::max(half_life_pages, 1.0)),
      chunks_max_(std::max<size_t>(chunks_max, 2)) {}

void ChunkCounter::feed(std::span<const TelemetryRecord> records) {
  for (const TelemetryRecord& record : records) {
    if (!believable(record, wire::kCapacityBlocksMax)) continue;
    const bool trim = record.kind == TelemetryKind::kTrim;
    if (!trim) clock_ += record.pages;
    if (trim ? record.pages <= kTrimPagesMax : record.kind == TelemetryKind::kOverwrite) {
      died(record);
    }
  }
}

void ChunkCounter::died(const TelemetryRecord& record) {
  const uint64_t end = record.block + record.pages;
  for (uint64_t at = record.block; at < end;) {
    const uint64_t stop = std::min(end, (at / kChunkPages + 1) * kChunkPages);
    const auto number = static_cast<uint32_t>(at / kChunkPages);
    if (chunks_.size() >= chunks_max_ && !chunks_.contains(number)) evict();
    died(chunks_[number], static_cast<float>(stop - at), record.kind == TelemetryKind::kTrim);
    at = stop;
  }
}

void ChunkCounter::died(Chunk& chunk, float pages, bool trimmed) const {
  if (chunk.overwritten + chunk.trimmed > 0) {
    const float interval = std::log2(static_cast<float>(clock_ - chunk.last) + 1);
    const float off = chunk.interval < 0 ? 0 : interval - chunk.interval;
    chunk.interval = chunk.interval < 0 ? interval : chunk.interval + kAlpha * off;
    chunk.variance = (1 - kAlpha) * (chunk.variance + kAlpha * off * off);
  }
  const float share = kept(chunk);
  chunk.overwritten = chunk.overwritten * share + (trimmed ? 0 : pages);
  chunk.trimmed = chunk.trimmed * share + (trimmed ? pages : 0);
  chunk.last = clock_;
}

float ChunkCounter::kept(const Chunk& chunk) const {
  const double halvings = static_cast<double>(clock_ - chunk.last) / half_life_pages_;
  return static_cast<float>(std::exp2(-halvings));
}

void ChunkCounter::evict() {
  const auto activity = [this](const Chunk& chunk) {
    return (chunk.overwritten + chunk.trimmed) * kept(chunk);
  };
  std::vector<float> all;
  all.reserve(chunks_.size());
  for (const auto& [number, chunk] : chunks_) all.push_back(activity(chunk));
  const auto middle = all.begin() + static_cast<ptrdiff_t>(all.size() / 2);
  std::ranges::nth_element(all, middle);
  std::erase_if(chunks_, [&](const auto& entry) { return activity(entry.second) <= *middle; });
}

// The first is as many pages; view() makes it relative.
ChunkFeatures ChunkCounter::features(const Chunk& chunk) const {
  constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
  const bool known = chunk.interval >= 0;
  return {chunk.overwritten * kept(chunk), static_cast<float>(clock_ - chunk.last),
          known ? std::exp2(chunk.interval) - 1 : kUnknown,
          known ? std::sqrt(chunk.variance) : kUnknown,
          chunk.trimmed / (chunk.trimmed + chunk.overwritten)};
}

ChunkViews ChunkCounter::view() const {
  ChunkViews out;
  out.chunks.reserve(chunks_.size());
  for (const auto& [number, chunk] : chunks_) out.chunks.push_back(number);
  std::ranges::sort(out.chunks);
  out.features.reserve(chunks_.size());
  double sum = 0;
  for (const uint64_t number : out.chunks) {
    out.features.push_back(features(chunks_.at(static_cast<uint32_t>(number))));
    sum += out.features.back()[0];
  }
  const double average = sum / static_cast<double>(std::max<size_t>(out.chunks.size(), 1));
  for (ChunkFeatures& row : out.features) {
    row[0] = average > 0 ? static_cast<float>(row[0] / average) : 0.0F;
  }
  return out;
}

}  // namespace streamfs::classifier
