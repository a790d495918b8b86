// The limits and the report of an idle device's work.
// Thread safety: values and pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "ssd/geometry.h"

namespace streamfs::ssd {

// A device's need of idle time, by its free blocks.
enum class Urgency : uint8_t {
  kNone,      // it has the wanted free blocks
  kLow,       // at least half of them: collects victims up to the valid limit
  kHigh,      // fewer: collects victims up to half way between the limit and full
  kCritical,  // the host's next block makes it collect: collects any block with a dead page
};

struct IdleLimits {
  uint64_t pages = UINT64_MAX;  // of 4 KiB to copy at most, in whole map units
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::function<bool()> stop = {};  // called before each step; true ends the work
  uint32_t free_blocks = 0;  // wanted; 0: by recent bursts (Ssd), else a quarter of the spare
  // A victim may hold this share of valid pages. Bursts (idle_work.h) raises the share to where a
  // freed page costs `dearer` times what it recently cost in the host's own victims.
  double valid_limit = 0.5;
  double dearer = 1.08;
  uint32_t wear_spread = 64;  // tolerated difference of erases between two blocks
  // Time for which the hosts of the virtual clocks (latency.h) send nothing; a step that takes
  // longer delays them. 0: they continue to send and wait for all of the work.
  uint64_t idle_ns = 0;
};

// Returns the free blocks that the limits want of this device.
uint32_t wanted_free_blocks(const Geometry& geometry, const IdleLimits& limits);
// Returns the free blocks wanted before a burst of so many blocks: the burst and low_water + 2, but
// never more than half of the spare blocks unless low_water + 2 is more. Spare that is kept free
// holds no garbage, so that victims have more valid pages.
uint32_t blocks_for_burst(const Geometry& geometry, uint64_t burst_blocks);

Urgency urgency_of(const Geometry& geometry, uint64_t free_blocks, const IdleLimits& limits = {});

const char* name_of(Urgency urgency);

struct IdleReport {
  // kNothingLeft also stands for an error, a power cut and a read-only device; kDeadline also for
  // the end of idle_ns.
  enum class End : uint8_t { kNothingLeft, kPages, kDeadline, kStopped };
  End end = End::kNothingLeft;
  uint64_t gc_pages = 0, wear_pages = 0;  // of 4 KiB
  uint64_t erases = 0;
};

}  // namespace streamfs::ssd
