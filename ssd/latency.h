// Virtual time: how fast would this NAND have been? Never mixed with wall-clock time.
//
// Model: a program is a transfer over the die's channel, then tPROG on the die, while the next
// transfer to it may go on (cache program); a read is tR on the die, then a transfer; an erase
// occupies every die of the superblock. Wordlines go round the dies, dies round the channels. A
// host write is acknowledged when its last page has a place in the write buffer, which holds
// `buffer_depth` programs a die; work of garbage collection stands in the same queues and so delays
// the host. No suspends. An erase costs tBERS for 256 wordlines, less for shorter blocks, so that a
// scaled device keeps the share of time that it erases; its tail latencies are those of short
// erases.
//
// Two hosts are simulated beside each other over the same work. The *paced* one offers `load` of
// the bandwidth that dies and channels have without GC and waits for each write: latencies. The
// *saturating* one sends the next request as soon as the buffer takes it: throughput. Either has up
// to `queue_depth` reads on their way. Beside that stands the work-conserving bound: the same work
// with the busiest of dies, channels and host interface never idle and perfectly balanced.
//
// A third one, on the *wall*, sends when its caller says (real_time.h). Its queues are its own and
// nothing of it is counted; without wall_arrives() it does not exist.
//
// Thread safety: none; the caller's lock. Crash: histograms and sums live with the caller's
// counters; queues are forgotten (an idle device).
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
  uint64_t erase_ns = 0;              // tBERS, a block of 256 wordlines
  uint64_t channel_page_ns = 13'653;  // a flash page at 1.2 GB/s
  uint64_t command_ns = 10'000;       // host interface, per command: latency
  uint64_t host_page_ns = 1'300;      // host interface, per 4 KiB: bandwidth
  uint32_t buffer_depth = 2;
  uint32_t queue_depth = 64;
  double load = 0.5;
};

// Typical 3D NAND of these cells.
Timing timing_of(Cell cell);

// How long the work of `counters` takes at least, in ns.
uint64_t work_conserving_ns(const Geometry& geometry, const Counters& counters);

// What those clocks and histograms say. Rates are of host bytes, read and written.
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

class LatencyModel {
 public:
  // A host read on its way.
  struct Read {
    uint64_t arrival_ns = 0;  // of the paced host
    uint64_t done_paced_ns = 0, done_saturating_ns = 0, done_wall_ns = 0;
  };

  LatencyModel(const Timing& timing, const Geometry& geometry, Counters& counters);

  void begin_write(uint32_t pages);
  void end_write();  // counts the latency of the write begun
  Read begin_read(uint32_t pages);
  void host_read(Read& read, Ppn first, uint32_t pages);
  void end_read(const Read& read);
  void read_for_write(Ppn first, uint32_t pages);  // read-modify-write: the write waits
  void programmed(Ppn first, uint32_t pages, bool by_host);
  void copied_from(Ppn page);  // GC's read; a run of pages of one flash page is one read
  void erased();

  // The paced and the saturating host send nothing: what is queued from here on begins now. Their
  // clocks stand still meanwhile; rested() says for how long that was, and what is queued beyond
  // it delays them.
  void rest();
  uint64_t backlog_ns() const;  // until everything queued is done, for the later of the two
  void rested(uint64_t ns);

  // The host on the wall sends a request now: what is begun next is this one. 0 pages: one that
  // moves no data.
  void wall_arrives(uint64_t now_ns, uint32_t pages);
  // Of the last one that writes or moves no data.
  uint64_t wall_accepted_ns() const { return wall_.acknowledged_ns; }
  uint64_t wall_read_ns(const Read& read) const { return read.done_wall_ns + timing_.command_ns; }
  uint64_t wall_drained_ns() const;  // everything sent to the dies is done

 private:
  // The queues as one of the two hosts sees them.
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
  std::vector<Read> reads_;  // ring of the last ones
  size_t next_read_ = 0;
  uint32_t last_copied_flash_page_ = kNoPage;
};

using Histogram = std::array<uint64_t, kLatencyBuckets>;

// Log-linear histogram of nanoseconds: 16 buckets an octave from 1 µs on.
uint32_t latency_bucket(uint64_t ns);
// The value below which the share q of all counts lies, in µs; 0 for an empty histogram.
double latency_quantile_us(const Histogram& histogram, double q);
// Of all counts of both, as if each lay in the middle of its bucket; 0 for empty ones.
double latency_mean_us(const Histogram& one, const Histogram& other);

}  // namespace streamfs::ssd
