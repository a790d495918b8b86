#include "emulator/latency.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "emulator/counters.h"
#include "emulator/geometry.h"

namespace streamfs::emulator {
namespace {

constexpr uint32_t kSubBuckets = 16;
constexpr uint64_t kUnitNs = 64;  // 16 units ≈ 1 µs: the linear part

uint64_t bucket_floor_ns(uint32_t bucket) {
  if (bucket < kSubBuckets) return bucket * kUnitNs;
  const uint32_t octave = bucket / kSubBuckets - 1;
  return (uint64_t{kSubBuckets + bucket % kSubBuckets} << octave) * kUnitNs;
}

}  // namespace

uint32_t latency_bucket(uint64_t ns) {
  const uint64_t units = ns / kUnitNs;
  if (units < kSubBuckets) return static_cast<uint32_t>(units);
  const auto octave = static_cast<uint32_t>(std::bit_width(units)) - 5;
  const auto sub = static_cast<uint32_t>(units >> octave) - kSubBuckets;
  return std::min((octave + 1) * kSubBuckets + sub, kLatencyBuckets - 1);
}

double latency_quantile_us(const std::array<uint64_t, kLatencyBuckets>& histogram, double q) {
  const uint64_t total = std::accumulate(histogram.begin(), histogram.end(), uint64_t{0});
  if (total == 0) return 0;
  const auto rank = static_cast<uint64_t>(q * static_cast<double>(total - 1)) + 1;
  uint64_t seen = 0;
  uint32_t bucket = 0;
  while (bucket + 1 < kLatencyBuckets && (seen += histogram[bucket]) < rank) ++bucket;
  return static_cast<double>(bucket_floor_ns(bucket) + bucket_floor_ns(bucket + 1)) / 2000.0;
}

LatencyModel::LatencyModel(const Timing& timing, const Geometry& geometry, Counters& counters)
    : timing_(timing),
      dies_(geometry.nand.die_count()),
      wordline_pages_(geometry.wordline_pages),
      counters_(counters),
      die_free_ns_(dies_, counters.virtual_ns) {
  const double per_page =
      static_cast<double>(timing.program_ns) / (wordline_pages_ * dies_ * timing.load);
  page_interval_ns_ = static_cast<uint64_t>(per_page);
  arrival_ns_ = acknowledged_ns_ = counters.virtual_ns;
}

uint32_t LatencyModel::die_of_wordline(Ppn page) const {
  return page / wordline_pages_ % dies_;
}

void LatencyModel::occupy(uint32_t die, uint64_t ns) {
  die_free_ns_[die] = std::max(die_free_ns_[die], arrival_ns_) + ns;
}

void LatencyModel::begin_write(uint32_t pages) {
  arrival_ns_ = std::max(next_arrival_ns_, acknowledged_ns_);
  next_arrival_ns_ = arrival_ns_ + pages * page_interval_ns_;
  acknowledged_ns_ = arrival_ns_ + timing_.command_ns + pages * timing_.transfer_ns;
  counters_.virtual_ns = arrival_ns_;
}

void LatencyModel::end_write() {
  ++counters_.write_latency[latency_bucket(acknowledged_ns_ - arrival_ns_)];
}

void LatencyModel::programmed(Ppn first, uint32_t pages, bool by_host) {
  const uint32_t wordlines = (first + pages) / wordline_pages_ - first / wordline_pages_;
  for (uint32_t i = 0; i < wordlines; ++i) {
    const uint32_t die = die_of_wordline(first + i * wordline_pages_);
    const uint64_t buffered_ns = timing_.buffer_depth * timing_.program_ns;
    if (by_host && die_free_ns_[die] > buffered_ns)
      acknowledged_ns_ = std::max(acknowledged_ns_, die_free_ns_[die] - buffered_ns);
    occupy(die, timing_.program_ns);
  }
}

void LatencyModel::host_read(Ppn first, uint32_t pages) {
  for (Ppn page = first; page < first + pages; page += kFlashPagePages)
    occupy(die_of_wordline(page), timing_.read_ns);
}

void LatencyModel::copied_from(Ppn page) {
  if (page / kFlashPagePages == last_copied_flash_page_) return;
  last_copied_flash_page_ = page / kFlashPagePages;
  occupy(die_of_wordline(page), timing_.read_ns);
}

void LatencyModel::erased(BlockIndex block) {
  occupy(block % dies_, timing_.erase_ns);
}

}  // namespace streamfs::emulator
