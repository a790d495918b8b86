// The producer's end of the telemetry rings (base/wire/telemetry.h).
// Thread safety: every method, any thread, without lock or wait. A thread uses the ring of its
// thread number, or the next ring that no other thread is writing to. If all are taken, the record
// is dropped and counted. Crash: the memory is lost with the process.
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

  // `capacity`: records per ring, clamped to 2..2^22 and rounded up to a power of two. Errors:
  // those of SharedMapping::make().
  static Result<std::unique_ptr<Telemetry>> make(uint32_t capacity, uint64_t capacity_blocks,
                                                 const std::array<uint8_t, 16>& uuid);
  void record(const wire::TelemetryRecord& record);
  void set_clock(uint64_t clock_pages);
  void set_capacity_blocks(uint64_t blocks);  // read by a daemon when it attaches
  uint64_t records() const;                   // ever written to a ring, overwritten ones too
  const SharedMapping& memory() const { return memory_; }

 private:
  struct alignas(64) Ring {
    std::atomic<bool> taken{false};
    wire::TelemetryRingHeader* header = nullptr;
    wire::TelemetryRecord* slots = nullptr;
    // Kept in private memory, because the shared memory is never trusted.
    std::atomic<uint64_t> head{0};
  };
  explicit Telemetry(SharedMapping memory, uint32_t capacity);
  wire::TelemetryHeader& header() const;

  SharedMapping memory_;
  const uint32_t capacity_;
  std::array<Ring, kRings> rings_;
};

}  // namespace streamfs::placement
