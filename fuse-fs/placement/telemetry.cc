#include "fuse-fs/placement/telemetry.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "base/result.h"
#include "base/thread_number.h"
#include "base/wire/magic.h"
#include "base/wire/telemetry.h"

namespace streamfs::placement {
namespace {

constexpr uint64_t ring_bytes(uint32_t capacity) {
  return sizeof(wire::TelemetryRingHeader) + uint64_t{capacity} * sizeof(wire::TelemetryRecord);
}

}  // namespace

Result<std::unique_ptr<Telemetry>> Telemetry::make(uint32_t capacity, uint64_t capacity_blocks,
                                                   const std::array<uint8_t, 16>& uuid) {
  capacity = std::bit_ceil(std::clamp<uint32_t>(capacity, 2, 1U << 22));
  SFS_ASSIGN(SharedMapping memory,
             SharedMapping::make("streamfs-telemetry",
                                 sizeof(wire::TelemetryHeader) + kRings * ring_bytes(capacity)));
  auto* header = new (memory.data()) wire::TelemetryHeader{};
  header->version = wire::kTelemetryVersion;
  header->record_size = sizeof(wire::TelemetryRecord);
  header->ring_count = kRings;
  header->capacity = capacity;
  header->capacity_blocks = capacity_blocks;
  std::copy(uuid.begin(), uuid.end(), header->uuid);
  header->magic = wire::kTelemetryMagic;
  return std::unique_ptr<Telemetry>(new Telemetry(std::move(memory), capacity));
}

Telemetry::Telemetry(SharedMapping memory, uint32_t capacity)
    : memory_(std::move(memory)), capacity_(capacity) {
  std::byte* at = memory_.data() + sizeof(wire::TelemetryHeader);
  for (Ring& ring : rings_) {
    ring.header = new (at) wire::TelemetryRingHeader{};
    ring.slots = reinterpret_cast<wire::TelemetryRecord*>(at + sizeof(wire::TelemetryRingHeader));
    at += ring_bytes(capacity);
  }
}

wire::TelemetryHeader& Telemetry::header() const {
  return *std::launder(reinterpret_cast<wire::TelemetryHeader*>(memory_.data()));
}

void Telemetry::record(const wire::TelemetryRecord& record) {
  const size_t first = thread_number();
  for (uint32_t i = 0; i < kRings; ++i) {
    Ring& ring = rings_[(first + i) % kRings];
    if (ring.taken.exchange(true, std::memory_order_acquire)) continue;
    const uint64_t head = ring.head.load(std::memory_order_relaxed);
    std::memcpy(&ring.slots[head & (capacity_ - 1)], &record, sizeof record);
    ring.header->head.store(head + 1, std::memory_order_release);
    ring.head.store(head + 1, std::memory_order_relaxed);
    ring.taken.store(false, std::memory_order_release);
    return;
  }
  rings_[first % kRings].header->dropped.fetch_add(1, std::memory_order_relaxed);
}

void Telemetry::set_capacity_blocks(uint64_t blocks) {
  std::atomic_ref(header().capacity_blocks).store(blocks, std::memory_order_relaxed);
}

void Telemetry::set_clock(uint64_t clock_pages) {
  header().clock_pages.store(clock_pages, std::memory_order_relaxed);
}

uint64_t Telemetry::records() const {
  uint64_t sum = 0;
  for (const Ring& ring : rings_) sum += ring.head.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace streamfs::placement
