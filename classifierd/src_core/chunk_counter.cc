#include "classifierd/src_core/chunk_counter.h"

#include <algorithm>
#include <cmath>

#include "classifierd/src_core/record_check.h"

namespace streamfs::classifier {

using wire::TelemetryKind;
using wire::TelemetryRecord;

ChunkCounter::ChunkCounter(double half_life_pages, size_t chunks_max)
    : half_life_pages_(std::max(half_life_pages, 1.0)),
      chunks_max_(std::max<size_t>(chunks_max, 2)) {}

void ChunkCounter::feed(std::span<const TelemetryRecord> records) {
  for (const TelemetryRecord& record : records) {
    if (!believable(record, kCapacityBlocksMax) || record.kind == TelemetryKind::kTrim) continue;
    clock_ += record.pages;
    if (record.kind != TelemetryKind::kOverwrite) continue;
    const uint64_t end = record.block + record.pages;
    for (uint64_t at = record.block; at < end;) {
      const uint64_t stop = std::min(end, (at / kChunkPages + 1) * kChunkPages);
      overwrite(at / kChunkPages, stop - at);
      at = stop;
    }
  }
}

void ChunkCounter::overwrite(uint64_t number, uint64_t pages) {
  if (chunks_.size() >= chunks_max_ && !chunks_.contains(number)) evict();
  Chunk& chunk = chunks_[number];
  chunk.count = now_count(chunk) + static_cast<double>(pages);
  chunk.last = clock_;
}

double ChunkCounter::now_count(const Chunk& chunk) const {
  return chunk.count * std::exp2(-static_cast<double>(clock_ - chunk.last) / half_life_pages_);
}

void ChunkCounter::evict() {
  std::vector<double> counts;
  counts.reserve(chunks_.size());
  for (const auto& [number, chunk] : chunks_) counts.push_back(now_count(chunk));
  const auto middle = counts.begin() + static_cast<ptrdiff_t>(counts.size() / 2);
  std::ranges::nth_element(counts, middle);
  std::erase_if(chunks_, [&](const auto& entry) { return now_count(entry.second) <= *middle; });
}

std::vector<ChunkView> ChunkCounter::view() const {
  std::vector<ChunkView> out;
  out.reserve(chunks_.size());
  double sum = 0;
  for (const auto& [number, chunk] : chunks_) {
    const double count = now_count(chunk);
    sum += count;
    out.push_back({number, count, static_cast<double>(clock_ - chunk.last)});
  }
  const double average = out.empty() ? 1 : std::max(sum / static_cast<double>(out.size()), 1e-12);
  for (ChunkView& chunk : out) chunk.relative /= average;
  std::ranges::sort(out, {}, &ChunkView::chunk);
  return out;
}

}  // namespace streamfs::classifier
