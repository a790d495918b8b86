#include "ssd/latency.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>

#include "ssd/counters.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {
namespace {

constexpr uint32_t kSubBuckets = 16;
constexpr uint64_t kReferenceWordlines = 256;
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

double latency_quantile_us(const Histogram& histogram, double q) {
  const uint64_t total = std::accumulate(histogram.begin(), histogram.end(), uint64_t{0});
  if (total == 0) return 0;
  const auto rank = static_cast<uint64_t>(q * static_cast<double>(total - 1)) + 1;
  uint64_t seen = 0;
  uint32_t bucket = 0;
  while (bucket + 1 < kLatencyBuckets && (seen += histogram[bucket]) < rank) ++bucket;
  return static_cast<double>(bucket_floor_ns(bucket) + bucket_floor_ns(bucket + 1)) / 2000.0;
}

double latency_mean_us(const Histogram& one, const Histogram& other) {
  double sum = 0, count = 0;
  for (uint32_t bucket = 0; bucket + 1 < kLatencyBuckets; ++bucket) {
    const auto here = static_cast<double>(one[bucket] + other[bucket]);
    sum += here * static_cast<double>(bucket_floor_ns(bucket) + bucket_floor_ns(bucket + 1)) / 2000;
    count += here;
  }
  return count == 0 ? 0 : sum / count;
}

Timing timing_of(Cell cell) {
  Timing timing;
  switch (cell) {
    case Cell::kSlc:
      timing.read_ns = 25'000;
      timing.program_ns = 200'000;
      timing.erase_ns = 2'000'000;
      break;
    case Cell::kMlc:
      timing.read_ns = 50'000;
      timing.program_ns = 1'000'000;
      timing.erase_ns = 3'000'000;
      break;
    case Cell::kTlc:
      timing.read_ns = 80'000;
      timing.program_ns = 2'000'000;
      timing.erase_ns = 4'000'000;
      break;
  }
  return timing;
}

uint64_t work_conserving_ns(const Geometry& geometry, const Counters& counters) {
  return std::max({counters.die_busy_ns / geometry.nand.die_count(),
                   counters.channel_busy_ns / geometry.nand.channels, counters.host_busy_ns});
}

namespace {

VirtualTime::Quantiles quantiles_of(const Histogram& latencies) {
  return {latency_quantile_us(latencies, 0.5), latency_quantile_us(latencies, 0.99),
          latency_quantile_us(latencies, 0.999)};
}

}  // namespace

VirtualTime virtual_time_of(const Geometry& geometry, const Counters& counters) {
  const auto host_bytes =
      static_cast<double>((counters.host_pages + counters.read_pages) * kPageBytes);
  const auto mb_per_s = [&](uint64_t ns) {
    return ns == 0 ? 0 : host_bytes * 1e3 / static_cast<double>(ns);
  };
  return {.write = quantiles_of(counters.write_latency),
          .read = quantiles_of(counters.read_latency),
          .seconds = static_cast<double>(counters.virtual_ns) / 1e9,
          .simulated_mb_per_s = mb_per_s(counters.saturated_ns),
          .bound_mb_per_s = mb_per_s(work_conserving_ns(geometry, counters))};
}

namespace {

uint64_t erase_time(const Timing& timing, const Geometry& geometry) {
  const uint64_t stripe = uint64_t{geometry.wordline_pages} * geometry.nand.die_count();
  const uint64_t wordlines = std::max<uint64_t>(1, geometry.pages_per_block / stripe);
  return std::min(timing.erase_ns, timing.erase_ns * wordlines / kReferenceWordlines);
}

// Returns the time between pages of the paced host: a page's share of the dies' or the channels'
// time, whichever is scarcer, at this load.
uint64_t interval(double die_ns, double channel_ns, const Geometry& geometry, double load) {
  const double scarcer =
      std::max(die_ns / geometry.nand.die_count(), channel_ns / geometry.nand.channels);
  return static_cast<uint64_t>(scarcer / load);
}

}  // namespace

LatencyModel::LatencyModel(const Timing& timing, const Geometry& geometry, Counters& counters)
    : timing_(timing),
      dies_(geometry.nand.die_count()),
      channels_(geometry.nand.channels),
      wordline_pages_(geometry.wordline_pages),
      erase_ns_(erase_time(timing, geometry)),
      wordline_transfer_ns_(geometry.wordline_pages / kFlashPagePages * timing.channel_page_ns),
      write_interval_ns_(interval(static_cast<double>(timing.program_ns) / geometry.wordline_pages,
                                  static_cast<double>(timing.channel_page_ns) / kFlashPagePages,
                                  geometry, timing.load)),
      read_interval_ns_(interval(static_cast<double>(timing.read_ns) / kFlashPagePages,
                                 static_cast<double>(timing.channel_page_ns) / kFlashPagePages,
                                 geometry, timing.load)),
      counters_(counters),
      reads_(timing.queue_depth) {
  const auto idle_since = [&](Lane& lane, uint64_t now) {
    lane.die_free_ns.assign(dies_, now);
    lane.channel_free_ns.assign(channels_, now);
    lane.arrival_ns = lane.acknowledged_ns = lane.next_arrival_ns = lane.horizon_ns = now;
  };
  idle_since(paced_, counters.virtual_ns);
  idle_since(saturating_, counters.saturated_ns);
}

// A request arrives. The saturating host is limited by its interface and by the requests that it
// waits for (the callers know which).
void LatencyModel::arrive(uint32_t pages, uint64_t interval_ns) {
  paced_.arrival_ns = std::max(paced_.next_arrival_ns, paced_.acknowledged_ns);
  paced_.next_arrival_ns = paced_.arrival_ns + pages * interval_ns;
  counters_.virtual_ns = paced_.arrival_ns;
  saturating_.arrival_ns = std::max(saturating_.next_arrival_ns, saturating_.acknowledged_ns);
  saturating_.next_arrival_ns = saturating_.arrival_ns + pages * timing_.host_page_ns;
  counters_.host_busy_ns += pages * timing_.host_page_ns;
  saturating_.horizon_ns = std::max(saturating_.horizon_ns, saturating_.next_arrival_ns);
}

void LatencyModel::begin_write(uint32_t pages) {
  arrive(pages, write_interval_ns_);
  paced_.acknowledged_ns = paced_.arrival_ns + timing_.command_ns + pages * timing_.host_page_ns;
}

void LatencyModel::end_write() {
  ++counters_.write_latency[latency_bucket(paced_.acknowledged_ns - paced_.arrival_ns)];
  note_horizon();
}

LatencyModel::Read LatencyModel::begin_read(uint32_t pages) {
  arrive(pages, read_interval_ns_);
  const Read& oldest = reads_[next_read_];
  paced_.arrival_ns = std::max(paced_.arrival_ns, oldest.done_paced_ns);
  saturating_.arrival_ns = std::max(saturating_.arrival_ns, oldest.done_saturating_ns);
  return {paced_.arrival_ns, paced_.arrival_ns, saturating_.arrival_ns, wall_.arrival_ns};
}

void LatencyModel::host_read(Read& read, Ppn first, uint32_t pages) {
  for (Ppn page = first / kFlashPagePages * kFlashPagePages; page < first + pages;
       page += kFlashPagePages) {
    read.done_paced_ns = std::max(read.done_paced_ns, read_flash_page(paced_, page));
    read.done_saturating_ns = std::max(read.done_saturating_ns, read_flash_page(saturating_, page));
    if (wall_exists_) read.done_wall_ns = std::max(read.done_wall_ns, read_flash_page(wall_, page));
    counters_.die_busy_ns += timing_.read_ns;
    counters_.channel_busy_ns += timing_.channel_page_ns;
  }
}

void LatencyModel::end_read(const Read& read) {
  const uint64_t latency_ns = read.done_paced_ns + timing_.command_ns - read.arrival_ns;
  ++counters_.read_latency[latency_bucket(latency_ns)];
  reads_[next_read_] = read;
  next_read_ = (next_read_ + 1) % reads_.size();
  note_horizon();
}

void LatencyModel::read_for_write(Ppn first, uint32_t pages) {
  Read read{paced_.arrival_ns, paced_.arrival_ns, saturating_.arrival_ns, wall_.arrival_ns};
  host_read(read, first, pages);
  paced_.acknowledged_ns = std::max(paced_.acknowledged_ns, read.done_paced_ns);
  saturating_.acknowledged_ns = std::max(saturating_.acknowledged_ns, read.done_saturating_ns);
  wall_.acknowledged_ns = std::max(wall_.acknowledged_ns, read.done_wall_ns);
}

void LatencyModel::note_horizon() {
  counters_.saturated_ns = std::max(counters_.saturated_ns, saturating_.horizon_ns);
}

uint64_t LatencyModel::read_flash_page(Lane& lane, Ppn page) {
  const uint32_t die = die_of(page);
  uint64_t& die_free = lane.die_free_ns[die];
  uint64_t& channel_free = lane.channel_free_ns[die % channels_];
  die_free = std::max(die_free, lane.arrival_ns) + timing_.read_ns;
  channel_free = std::max(channel_free, die_free) + timing_.channel_page_ns;
  lane.horizon_ns = std::max(lane.horizon_ns, channel_free);
  return channel_free;
}

void LatencyModel::program_wordline(Lane& lane, uint32_t die, bool by_host) {
  uint64_t& die_free = lane.die_free_ns[die];
  uint64_t& channel_free = lane.channel_free_ns[die % channels_];
  const uint64_t buffered_ns = timing_.buffer_depth * timing_.program_ns;
  if (by_host && die_free > buffered_ns)
    lane.acknowledged_ns = std::max(lane.acknowledged_ns, die_free - buffered_ns);
  const uint64_t register_free = die_free - std::min(die_free, timing_.program_ns);
  channel_free = std::max({channel_free, lane.arrival_ns, register_free}) + wordline_transfer_ns_;
  die_free = std::max(die_free, channel_free) + timing_.program_ns;
  lane.horizon_ns = std::max(lane.horizon_ns, die_free);
}

void LatencyModel::programmed(Ppn first, uint32_t pages, bool by_host) {
  const uint32_t end = (first + pages) / wordline_pages_;
  for (uint32_t wordline = first / wordline_pages_; wordline < end; ++wordline) {
    program_wordline(paced_, wordline % dies_, by_host);
    program_wordline(saturating_, wordline % dies_, by_host);
    if (wall_exists_) program_wordline(wall_, wordline % dies_, by_host);
    counters_.die_busy_ns += timing_.program_ns;
    counters_.channel_busy_ns += wordline_transfer_ns_;
  }
}

void LatencyModel::copied_from(Ppn page) {
  if (page / kFlashPagePages == last_copied_flash_page_) return;
  last_copied_flash_page_ = page / kFlashPagePages;
  read_flash_page(paced_, page);
  read_flash_page(saturating_, page);
  if (wall_exists_) read_flash_page(wall_, page);
  counters_.die_busy_ns += timing_.read_ns;
  counters_.channel_busy_ns += timing_.channel_page_ns;
}

void LatencyModel::erased() {
  for (Lane* lane : {&paced_, &saturating_, &wall_})
    for (uint64_t& die_free : lane->die_free_ns) {
      die_free = std::max(die_free, lane->arrival_ns) + erase_ns_;
      lane->horizon_ns = std::max(lane->horizon_ns, die_free);
    }
  counters_.die_busy_ns += erase_ns_ * dies_;
}

void LatencyModel::rest() {
  for (Lane* lane : {&paced_, &saturating_}) lane->arrival_ns = next_request_ns(*lane);
}

uint64_t LatencyModel::backlog_ns() const {
  uint64_t most = 0;
  for (const Lane* lane : {&paced_, &saturating_}) {
    const uint64_t busiest = std::ranges::max(lane->die_free_ns), next = next_request_ns(*lane);
    most = std::max(most, busiest - std::min(busiest, next));
  }
  return most;
}

void LatencyModel::rested(uint64_t ns) {
  for (Lane* lane : {&paced_, &saturating_}) {
    const uint64_t next = next_request_ns(*lane);
    const auto nearer = [&](uint64_t& free_ns) {
      free_ns = free_ns > next + ns ? free_ns - ns : std::min(free_ns, next);
    };
    std::ranges::for_each(lane->die_free_ns, nearer);
    std::ranges::for_each(lane->channel_free_ns, nearer);
    lane->horizon_ns = std::max(next, std::ranges::max(lane->die_free_ns));
  }
}

void LatencyModel::wall_arrives(uint64_t now_ns, uint32_t pages) {
  if (!wall_exists_) {
    wall_exists_ = true;
    wall_.die_free_ns.assign(dies_, now_ns);
    wall_.channel_free_ns.assign(channels_, now_ns);
  }
  wall_.arrival_ns = std::max(now_ns, wall_.next_arrival_ns);
  wall_.next_arrival_ns = wall_.arrival_ns + pages * timing_.host_page_ns;
  wall_.acknowledged_ns = wall_.next_arrival_ns + timing_.command_ns;
}

uint64_t LatencyModel::wall_drained_ns() const {
  const auto busiest = std::ranges::max_element(wall_.die_free_ns);
  return busiest == wall_.die_free_ns.end() ? 0 : std::max(*busiest, wall_.acknowledged_ns);
}

}  // namespace streamfs::ssd
