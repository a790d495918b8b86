// The telemetry rings, by which placement reports every written or trimmed page to the learning
// daemon.
//
// Layout of the shared memory (a memfd, sealed against shrinking): TelemetryHeader, then ring_count
// rings of TelemetryRingHeader + capacity records. Each ring has one producer at a time and any
// number of readers. A producer never waits for a reader. A reader that falls more than `capacity`
// records behind has lost some; it detects that by `head` and counts the loss itself.
// Publication: the producer stores the record, then head with release order. A reader copies
// records, then reads head again and discards what may have been overwritten meanwhile.
// After a crash: the memory is lost with the mount daemon; nothing depends on it.
#pragma once

#include <atomic>
#include <cstdint>

namespace streamfs::wire {

inline constexpr uint32_t kTelemetryVersion = 4;

enum class TelemetryKind : uint8_t { kNew = 0, kOverwrite = 1, kTrim = 2 };

// A contiguous run of pages of one request on one pStream. All its pages overwrite data of one
// age class, or none does. A trim is one record of its length.
struct TelemetryRecord {
  uint64_t clock_pages;     // pages written to the device before this run
  uint64_t block;           // first block of the run on the data device
  uint32_t pages;           // length of this run
  uint32_t request_pages;   // length of the request the run is part of, before any split
  uint32_t request_offset;  // place of the run in that request, pages
  uint32_t time_ms;         // of a monotonic clock, modulo 2^32
  uint16_t vstream;
  uint16_t pstream;
  TelemetryKind kind;
  uint8_t age;         // age class (model_table.h) if kind is kOverwrite, else 0
  uint8_t generation;  // of the vStream's number
  uint8_t
      file_place;  // of the request: 1 + half_log2 of the pages before it in its file; 0: unknown
};
static_assert(sizeof(TelemetryRecord) == 40);

struct TelemetryRingHeader {
  std::atomic<uint64_t> head;     // records ever produced; slot = head % capacity
  std::atomic<uint64_t> dropped;  // records lost because every ring was in use
  uint64_t reserved[6];
};
static_assert(sizeof(TelemetryRingHeader) == 64);

struct TelemetryHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t record_size;
  uint32_t ring_count;
  uint32_t capacity;         // records a ring, power of two
  uint64_t capacity_blocks;  // size of the data device, for the daemon's maps
  uint8_t uuid[16];
  std::atomic<uint64_t> clock_pages;  // pages written so far
  uint64_t reserved;
};
static_assert(sizeof(TelemetryHeader) == 64);

}  // namespace streamfs::wire
