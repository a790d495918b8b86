#include "classifierd/src_core/telemetry_reader.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "base/wire/magic.h"
#include "base/wire/record_check.h"

namespace streamfs::classifier {

using wire::TelemetryHeader;
using wire::TelemetryRecord;
using wire::TelemetryRingHeader;

namespace {

constexpr uint32_t kRingsMax = 4096;
constexpr uint32_t kRingCapacityMax = 1U << 26;

size_t ring_bytes(uint32_t capacity) {
  return sizeof(TelemetryRingHeader) + size_t{capacity} * sizeof(TelemetryRecord);
}

void check(bool holds, const char* sentence) {
  if (!holds) throw std::runtime_error(std::string("telemetry: ") + sentence);
}

}  // namespace

TelemetryReader::TelemetryReader(int fd)
    : map_(fd, SharedMap::Access::kRead, sizeof(TelemetryHeader)) {
  check(header().magic == wire::kTelemetryMagic, "wrong magic");
  check(header().version == wire::kTelemetryVersion, "unknown version");
  check(header().record_size == sizeof(TelemetryRecord), "unknown record size");
  ring_count_ = header().ring_count;
  capacity_ = header().capacity;
  capacity_blocks_ = header().capacity_blocks;
  check(ring_count_ >= 1 && ring_count_ <= kRingsMax, "impossible ring count");
  check(std::has_single_bit(capacity_) && capacity_ <= kRingCapacityMax, "impossible capacity");
  check(capacity_blocks_ >= 1 && capacity_blocks_ <= wire::kCapacityBlocksMax,
        "impossible device size");
  check(map_.size() >= sizeof(TelemetryHeader) + ring_count_ * ring_bytes(capacity_),
        "smaller than its rings");
  for (uint32_t i = 0; i < ring_count_; ++i) {
    const uint64_t head = ring(i).head.load(std::memory_order_acquire);
    cursors_.push_back(head > capacity_ ? head - capacity_ : 0);  // Older ones were never ours.
  }
}

std::vector<TelemetryRecord> TelemetryReader::read(size_t records_max) {
  std::vector<TelemetryRecord> out;
  for (uint32_t i = 0; i < ring_count_; ++i) {
    read_ring(i, records_max / ring_count_ + 1, out);
  }
  std::ranges::stable_sort(out, {}, &TelemetryRecord::clock_pages);
  return out;
}

void TelemetryReader::read_ring(uint32_t index, size_t records_max,
                                std::vector<TelemetryRecord>& out) {
  uint64_t& cursor = cursors_[index];
  const uint64_t head = ring(index).head.load(std::memory_order_acquire);
  if (head < cursor) cursor = head;  // The producer started again: nothing before it is ours.
  if (head - cursor > capacity_) {
    lost_ += head - capacity_ - cursor;
    cursor = head - capacity_;
  }
  const uint64_t first = cursor;
  const uint64_t last = first + std::min<uint64_t>(head - first, records_max);
  const size_t before = out.size();
  for (; cursor != last; ++cursor) out.push_back(load(index, cursor));
  // Slots that the producer may have reached while we copied are dropped: they may be torn. The
  // slot at head itself may be half written, so one more goes.
  std::atomic_thread_fence(std::memory_order_acquire);
  const uint64_t reached = ring(index).head.load(std::memory_order_relaxed);
  const uint64_t oldest_safe = reached >= capacity_ ? reached - capacity_ + 1 : 0;
  const uint64_t torn = std::min(oldest_safe > first ? oldest_safe - first : 0, last - first);
  lost_ += torn;
  const auto begin = out.begin() + static_cast<ptrdiff_t>(before);
  out.erase(begin, begin + static_cast<ptrdiff_t>(torn));
  const auto bad = std::remove_if(
      out.begin() + static_cast<ptrdiff_t>(before), out.end(),
      [this](const TelemetryRecord& record) { return !believable(record, capacity_blocks_); });
  rejected_ += static_cast<uint64_t>(out.end() - bad);
  out.erase(bad, out.end());
}

TelemetryRecord TelemetryReader::load(uint32_t ring_index, uint64_t record) const {
  constexpr size_t kWords = sizeof(TelemetryRecord) / sizeof(uint64_t);
  auto* const base = reinterpret_cast<std::byte*>(&ring(ring_index)) + sizeof(TelemetryRingHeader);
  auto* const from =
      reinterpret_cast<uint64_t*>(base + (record & (capacity_ - 1)) * sizeof(TelemetryRecord));
  std::array<uint64_t, kWords> words;  // Relaxed words: the producer may be storing these.
  for (size_t i = 0; i < kWords; ++i) {
    words[i] = std::atomic_ref<uint64_t>(from[i]).load(std::memory_order_relaxed);
  }
  return std::bit_cast<TelemetryRecord>(words);
}

uint64_t TelemetryReader::dropped() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < ring_count_; ++i) {
    sum += ring(i).dropped.load(std::memory_order_relaxed);
  }
  return sum;
}

uint64_t TelemetryReader::clock_pages() const {
  return header().clock_pages.load(std::memory_order_relaxed);
}

std::vector<uint8_t> TelemetryReader::uuid() const {
  return {std::begin(header().uuid), std::end(header().uuid)};
}

const TelemetryHeader& TelemetryReader::header() const {
  return *reinterpret_cast<const TelemetryHeader*>(map_.data());
}

TelemetryRingHeader& TelemetryReader::ring(uint32_t index) const {
  return *reinterpret_cast<TelemetryRingHeader*>(map_.data() + sizeof(TelemetryHeader) +
                                                 index * ring_bytes(capacity_));
}

}  // namespace streamfs::classifier
