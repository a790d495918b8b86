// Reads the telemetry rings by the protocol of base/wire/telemetry.h, losing records rather than
// waiting, and counting what it loses. Nothing read is trusted: the header is checked once, every
// record by believable(), and a head that jumps (garbage, a restarted producer) moves the cursor.
// Thread safety: one thread. Crash: nothing persistent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/wire/telemetry.h"
#include "classifierd/src_core/shared_map.h"

namespace streamfs::classifier {

class TelemetryReader {
 public:
  // Throws std::runtime_error if the memory is not a telemetry area of this version.
  explicit TelemetryReader(int fd);

  // Returns new records of all rings, sorted by device clock, about `records_max` at most: each
  // ring gives up to records_max ÷ rings + 1. A later call may return an earlier clock.
  std::vector<wire::TelemetryRecord> read(size_t records_max);

  uint64_t lost() const { return lost_; }          // overwritten before they were read
  uint64_t rejected() const { return rejected_; }  // unbelievable
  uint64_t dropped() const;                        // by the producers, by their own count
  uint64_t capacity_blocks() const { return capacity_blocks_; }
  uint64_t clock_pages() const;
  bool sealed() const { return map_.sealed(); }
  std::vector<uint8_t> uuid() const;

 private:
  const wire::TelemetryHeader& header() const;
  wire::TelemetryRingHeader& ring(uint32_t index) const;
  wire::TelemetryRecord load(uint32_t ring_index, uint64_t record) const;
  void read_ring(uint32_t index, size_t records_max, std::vector<wire::TelemetryRecord>& out);

  SharedMap map_;
  uint32_t ring_count_ = 0;
  uint32_t capacity_ = 0;
  uint64_t capacity_blocks_ = 0;
  uint64_t lost_ = 0;
  uint64_t rejected_ = 0;
  std::vector<uint64_t> cursors_;
};

}  // namespace streamfs::classifier
