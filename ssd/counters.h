// The counters of an emulated SSD, in pages of 4 KiB. The structs are part of the image format: the
// holder of the image updates them in the shared mapping, so that they survive its death and other
// processes can read them or store a new baseline while the image is in use.
//
// Thread safety: one writer at a time, under the device's locks; plain 64-bit fields.
#pragma once

#include <array>
#include <cstdint>

#include "ssd/geometry.h"

namespace streamfs::ssd {

inline constexpr uint32_t kLatencyBuckets = 512;

struct StreamCounters {
  uint64_t host_pages = 0;
  uint64_t gc_pages = 0;  // copied out of blocks of this stream
};

// Counters only grow: a reset stores a copy as the baseline, and statistics are the difference.
struct Counters {
  uint64_t host_pages = 0;
  uint64_t gc_pages = 0;
  uint64_t pad_pages = 0;      // programmed without data, because a flush completes a wordline
  uint64_t idle_gc_pages = 0;  // of gc_pages: copied while the host was idle
  uint64_t wear_pages = 0;     // of gc_pages: copied to level wear
  uint64_t erases = 0;
  uint64_t read_pages = 0;
  uint64_t trimmed_pages = 0;
  uint64_t flushes = 0;
  uint64_t rmw_reads = 0;  // read because a write covered a map unit in part
  uint64_t rmw_pages = 0;  // programmed beside the host's pages, for the same reason
  uint64_t program_failures = 0;
  uint64_t erase_failures = 0;
  uint64_t media_errors = 0;        // reads of data that does not fit its checksum
  uint64_t unknown_placements = 0;  // writes with a stream or handle that the device lacks
  // See latency.h: the clocks of its two hosts, and the sums of the work.
  uint64_t virtual_ns = 0, saturated_ns = 0;
  uint64_t die_busy_ns = 0, channel_busy_ns = 0, host_busy_ns = 0;
  std::array<StreamCounters, kMaxStreams> streams{};
  std::array<uint64_t, kLatencyBuckets> write_latency{}, read_latency{};
};
static_assert(sizeof(Counters) ==
              sizeof(uint64_t) * (20 + 2 * size_t{kMaxStreams} + 2 * kLatencyBuckets));

// Ends of log blocks (ftl/log_block.h).
struct Merges {
  uint64_t switched = 0, partial = 0, full = 0;
};

struct LiveCounts {
  uint64_t live_pages = 0;
  uint64_t peak_live_pages = 0;
  uint64_t bad_blocks = 0;       // from the factory and later ones, also if not yet emptied
  uint64_t occupied_blocks = 0;  // not free: open, closed or bad
};

// Returns `now` − `before`, field by field.
Counters difference(const Counters& now, const Counters& before);
Merges difference(const Merges& now, const Merges& before);

}  // namespace streamfs::ssd
