// What an idle device may do, how far, and how much it did.
// Thread safety: values and pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "ssd/geometry.h"

namespace streamfs::ssd {

// How much a device wants idle time, by its free blocks.
enum class Urgency : uint8_t {
  kNone,      // as many as wanted
  kLow,       // at least half of that: only victims below the valid limit are worth their copies
  kHigh,      // fewer: victims half way between the limit and full are taken, too
  kCritical,  // the host's own writes collect: any block with a dead page
};

struct IdleLimits {
  uint64_t pages = UINT64_MAX;  // of 4 KiB to copy at most, whole map units
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::function<bool()> stop = {};  // asked before every step of some dozen copies
  uint32_t free_blocks = 0;   // wanted; 0: what bursts took lately (Ssd), else a quarter of the
                              // spare blocks
  double valid_limit = 0.5;   // share of valid pages that a victim may hold, …
  double dearer = 1.08;       // … or a page it gives back costs so many times what one of the
                              // host's own victims cost lately
  uint32_t wear_spread = 64;  // erases between the coldest and the most worn block
  // For how long the hosts of the virtual clocks (latency.h) send nothing: begun steps that would
  // take longer delay them. 0: they send on, and wait for all of it.
  uint64_t idle_ns = 0;
};

// How many free blocks the limits want of this device.
uint32_t wanted_free_blocks(const Geometry& geometry, const IdleLimits& limits);
// What a burst of so many blocks wants, half of the spare at most: free blocks are spare that holds
// no garbage, so that the victims of those who keep too many are dearer.
uint32_t blocks_for_burst(const Geometry& geometry, uint64_t burst_blocks);

Urgency urgency_of(const Geometry& geometry, uint64_t free_blocks, const IdleLimits& limits = {});

const char* name_of(Urgency urgency);

struct IdleReport {
  enum class End : uint8_t { kNothingLeft, kPages, kDeadline, kStopped };
  End end = End::kNothingLeft;
  uint64_t gc_pages = 0, wear_pages = 0;  // of 4 KiB
  uint64_t erases = 0;
};

}  // namespace streamfs::ssd
