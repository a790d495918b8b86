// The producer's end of the telemetry rings (base/wire/telemetry.h).
// Thread safety: record() any thread, without lock or wait: a thread uses the ring of its number,
// or the next one nobody is in; if all are taken the record is dropped and counted.
// Crash: the memory dies with the process.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "base/result.h"
#include "base/wire/telemetry.h"
#include "fuse-fs/placement/shared_memory.h"

namespace streamfs::placement {

class Telemetry {
 public:
  static constexpr uint32_t kRings = 8;

  // capacity: records a ring, rounded up to a power of two.
  static Result<std::unique_ptr<Telemetry>> make(uint32_t capacity, uint64_t capacity_blocks,
                                                 const std::array<uint8_t, 16>& uuid);
  void record(const wire::TelemetryRecord& record);
  void set_clock(uint64_t clock_pages);
  void set_capacity_blocks(uint64_t blocks);  // for a daemon that attaches from now on
  uint64_t records() const;                   // ever produced, the overwritten included
  const SharedMapping& memory() const { return memory_; }

 private:
  struct alignas(64) Ring {
    std::atomic<bool> taken{false};
    wire::TelemetryRingHeader* header = nullptr;
    wire::TelemetryRecord* slots = nullptr;
    // The producer's own: what the shared memory says is never believed.
    std::atomic<uint64_t> head{0};
  };
  explicit Telemetry(SharedMapping memory, uint32_t capacity);
  wire::TelemetryHeader& header() const;

  SharedMapping memory_;
  const uint32_t capacity_;
  std::array<Ring, kRings> rings_;
};

}  // namespace streamfs::placement
