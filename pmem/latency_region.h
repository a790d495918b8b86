// Memory with the latency of a real medium, to measure the cost of an operation on it.
//
//   store      costs nothing: it stays in the cache
//   flush      begins to program the words of the line that differ from the medium's
//   fence      waits until this thread's flushes are programmed; the medium programs one at a time
//   load, at   reads the line from the medium, unless this thread read that line last
//
// The model has no CPU cache except that one line, so read costs are an upper bound. Waits spin.
// Thread safety: as region.h. After a crash: nothing is left; it is ordinary memory.
#pragma once

#include <memory>
#include <string_view>

#include "pmem/region.h"

namespace streamfs::pmem {

struct LatencyModel {
  std::string_view name;
  uint64_t program_word_ns;  // each changed word of a line
  uint64_t program_line_ns;  // each line with a changed word
  uint64_t read_line_ns;
};

// Lee, "PRAM + NAND hybrid storage": a word is programmed in 10 µs and read in 80 ns.
inline constexpr LatencyModel kPram{"PRAM", 10'000, 0, 80};
// Yang et al., "An Empirical Guide to the Behavior and Use of Scalable Persistent Memory", FAST
// 2020, figure 2: a store with CLWB and a fence takes 62 ns, a random read 305 ns.
inline constexpr LatencyModel kOptane{"Optane", 0, 62, 305};

class LatencyRegion : public Region {
 public:
  // Turns the latencies on or off for the calling thread, in all latency regions. They are on at
  // first; turn them off while a measurement is prepared.
  virtual void charge(bool on) = 0;
};
std::unique_ptr<LatencyRegion> make_latency_region(uint64_t size, MetaClass meta_class,
                                                   const LatencyModel& model);

}  // namespace streamfs::pmem
