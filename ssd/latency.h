// Virtual time: simulates the speed of the NAND, independently of wall-clock time.
//
// Model: a program is a transfer over the die's channel, then tPROG on the die, during which the
// next transfer to it may run (cache program). A read is tR on the die, then a transfer. An erase
// occupies every die of the superblock. Wordlines go round the dies, dies round the channels. A
// host write is acknowledged when its last page has a place in the write buffer, which holds
// `buffer_depth` programs a die. Garbage collection uses the same queues and so delays the host.
// There are no suspends. An erase costs tBERS for 256 or more wordlines and less for shorter
// blocks, so that a scaled device keeps its share of erase time; its tail latencies are those of
// short erases.
//
// Two hosts are simulated over the same work. The *paced* one offers `load` of the bandwidth that
// dies and channels have without GC and waits for each write: it gives latencies. The *saturating*
// one sends the next request as soon as the buffer takes it: it gives throughput. Each has up to
// `queue_depth` reads in flight. The work-conserving bound is the time of the same work if the
// busiest of dies, channels and host interface were never idle and perfectly balanced.
//
// A third host, on the *wall*, sends when its caller says so (real_time.h). It has its own queues
// and no counters; without wall_arrives() it does not exist.
//
// Thread safety: none; the caller's lock. After a crash: histograms and sums are in the caller's
// counters; the queues start empty.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ssd/counters.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

struct Timing {
  uint64_t read_ns = 0;               // tR, a 16 KiB flash page
  uint64_t program_ns = 0;            // tPROG, a wordline in all planes, one shot
  uint64_t erase_ns = 0;              // tBERS, a block of 256 or more wordlines
  uint64_t channel_page_ns = 13'653;  // a flash page at 1.2 GB/s
  uint64_t command_ns = 10'000;       // host interface, per command: latency
  uint64_t host_page_ns = 1'300;      // host interface, per 4 KiB: bandwidth
  uint32_t buffer_depth = 2;
  uint32_t queue_depth = 64;
  double load = 0.5;
};

// Typical 3D NAND of these cells.
Timing timing_of(Cell cell);

// Returns the work-conserving bound of the work in `counters`, in ns.
uint64_t work_conserving_ns(const Geometry& geometry, const Counters& counters);

// Results of the clocks and histograms. Rates are of host bytes, read and written.
struct VirtualTime {
  struct Quantiles {
    double p50_us = 0, p99_us = 0, p999_us = 0;
  };
  Quantiles write, read;
  double seconds = 0;             // of the paced host
  double simulated_mb_per_s = 0;  // of the saturating host
  double bound_mb_per_s = 0;      // work-conserving
};
VirtualTime virtual_time_of(const Geometry& geometry, const Counters& counters);

// Pages are of 4 KiB. A host write is begin_write(), the calls for the flash operations that it
// causes, and end_write(). A host read is begin_read(), host_read() for each run of pages that are
// neighbours on the flash, and end_read().
class LatencyModel {
 public:
  // A host read in flight.
  struct Read {
    uint64_t arrival_ns = 0;  // of the paced host
    uint64_t done_paced_ns = 0, done_saturating_ns = 0, done_wall_ns = 0;
  };

  LatencyModel(const Timing& timing, const Geometry& geometry, Counters& counters);

  void begin_write(uint32_t pages);
  void end_write();  // counts the latency of the write
  Read begin_read(uint32_t pages);
  void host_read(Read& read, Ppn first, uint32_t pages);
  void end_read(const Read& read);
  void read_for_write(Ppn first, uint32_t pages);  // read-modify-write: the write waits
  // Counts a program for each wordline whose last page is among these.
  void programmed(Ppn first, uint32_t pages, bool by_host);
  void copied_from(Ppn page);  // GC's read; successive pages of one flash page are one read
  void erased();

  // rest() begins a pause of the paced and the saturating host: work queued from here on starts at
  // once, and their clocks stand still. rested() ends it after `ns`; work that takes longer delays
  // them.
  void rest();
  uint64_t backlog_ns() const;  // time until all queued work is done, of the slower host
  void rested(uint64_t ns);

  // The host on the wall sends a request, which begins next; `pages` is 0 if it moves no data.
  void wall_arrives(uint64_t now_ns, uint32_t pages);
  // Returns when its last request that is not a read is acknowledged.
  uint64_t wall_accepted_ns() const { return wall_.acknowledged_ns; }
  uint64_t wall_read_ns(const Read& read) const { return read.done_wall_ns + timing_.command_ns; }
  uint64_t wall_drained_ns() const;  // when all work sent to the dies is done

 private:
  // The queues of one of the three hosts.
  struct Lane {
    std::vector<uint64_t> die_free_ns, channel_free_ns;
    uint64_t arrival_ns = 0, next_arrival_ns = 0, acknowledged_ns = 0, horizon_ns = 0;
  };

  static uint64_t next_request_ns(const Lane& lane) {
    return std::max(lane.next_arrival_ns, lane.acknowledged_ns);
  }
  uint32_t die_of(Ppn page) const { return page / wordline_pages_ % dies_; }
  uint64_t read_flash_page(Lane& lane, Ppn page);
  void program_wordline(Lane& lane, uint32_t die, bool by_host);
  void arrive(uint32_t pages, uint64_t interval_ns);
  void note_horizon();

  const Timing timing_;
  const uint32_t dies_, channels_;
  const uint32_t wordline_pages_;
  const uint64_t erase_ns_;
  const uint64_t wordline_transfer_ns_;
  const uint64_t write_interval_ns_, read_interval_ns_;  // of the paced host, a page
  Counters& counters_;
  Lane paced_, saturating_, wall_;
  bool wall_exists_ = false;
  std::vector<Read> reads_;  // ring of the last queue_depth reads
  size_t next_read_ = 0;
  uint32_t last_copied_flash_page_ = kNoPage;
};

using Histogram = std::array<uint64_t, kLatencyBuckets>;

// Returns the bucket of a latency in a log-linear histogram: 16 buckets an octave from 1 µs on.
uint32_t latency_bucket(uint64_t ns);
// Returns the middle of the bucket of quantile q, in µs; 0 for an empty histogram.
double latency_quantile_us(const Histogram& histogram, double q);
// Returns the mean of both histograms, in µs, each count at the middle of its bucket; 0 if empty.
// Leaves out the last bucket, which has no upper end.
double latency_mean_us(const Histogram& one, const Histogram& other);

}  // namespace streamfs::ssd
