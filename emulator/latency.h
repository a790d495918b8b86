// Virtual time: when would a host write have been acknowledged? Never mixed with wall-clock time.
//
// Model: the dies work independently; a wordline is programmed on the die given by its number, a
// flash page (16 KiB) is read by one die, an erase occupies one die. A host write is acknowledged
// when its last page has a place in the write buffer, which holds `buffer_depth` programs a die;
// work of garbage collection stands in the same queues and so delays the host. Load: the host
// offers `load` of the bandwidth that the dies have without GC, and waits for each write.
// Work-conserving; no suspends.
//
// Thread safety: none; the caller's lock. Crash: the histogram lives with the caller's counters;
// queues are forgotten (an idle device).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/counters.h"

namespace streamfs::emulator {

struct Timing {
  uint64_t program_ns = 2'000'000;  // one-shot TLC, a wordline
  uint64_t read_ns = 80'000;        // a 16 KiB flash page
  uint64_t erase_ns = 4'000'000;
  uint64_t command_ns = 10'000;  // host interface, per command
  uint64_t transfer_ns = 1'300;  // host interface, per page
  uint32_t buffer_depth = 2;
  double load = 0.5;
};

class LatencyModel {
 public:
  LatencyModel(const Timing& timing, const Geometry& geometry, Counters& counters);

  void begin_write(uint32_t pages);
  void end_write();  // counts the latency of the write begun
  void host_read(Ppn first, uint32_t pages);
  void programmed(Ppn first, uint32_t pages, bool by_host);
  void copied_from(Ppn page);  // GC's read; a run of pages of one flash page is one read
  void erased(BlockIndex block);

 private:
  uint32_t die_of_wordline(Ppn page) const;
  void occupy(uint32_t die, uint64_t ns);

  const Timing timing_;
  const uint32_t dies_;
  const uint32_t wordline_pages_;
  Counters& counters_;
  std::vector<uint64_t> die_free_ns_;
  uint64_t page_interval_ns_;
  uint64_t arrival_ns_ = 0;
  uint64_t next_arrival_ns_ = 0;
  uint64_t acknowledged_ns_ = 0;
  uint32_t last_copied_flash_page_ = kNoPage;
};

// Log-linear histogram of nanoseconds: 16 buckets an octave from 1 µs on.
uint32_t latency_bucket(uint64_t ns);
// The value below which the share q of all counts lies, in µs; 0 for an empty histogram.
double latency_quantile_us(const std::array<uint64_t, kLatencyBuckets>& histogram, double q);

}  // namespace streamfs::emulator
