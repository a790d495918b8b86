// Finds runs: writes that begin where an earlier write ended, as appends and copies do. A write
// that begins up to eight pages before a run's end, and reaches at least that end, also continues
// the run: it rewrites the run's tail, as an append to a half-full last page does. The 512 most
// recent runs are kept, as far as sets allow.
// Thread safety: none. Crash: memory only.
#pragma once

#include <array>
#include <cstdint>

namespace streamfs::learning {

// A request's place in the run that it continues or begins.
struct RunPlace {
  uint64_t before = 0;  // pages the run had before the request
  uint8_t overlap = 0;  // pages of the run's tail that the request rewrites
  bool continues = false;
  // The share of the run's requests that rewrite its tail, 0 to 1: a moving mean in which the
  // newest request has a fifth of the weight.
  float overlaps = 0;
};

class Runs {
 public:
  // Adds a request of `pages` pages at `page` to the run it continues, or begins a run that
  // displaces the least recently used one of its set. `clock`: the time of the request.
  RunPlace place(uint64_t page, uint64_t pages, uint64_t clock);

 private:
  static constexpr uint32_t kSets = 64, kWays = 8;  // 512 runs
  static constexpr uint64_t kOverlapMax = 8;
  struct Run {
    uint64_t end = 0;  // the page after the last; 0: an unused entry
    uint64_t length = 0;
    uint64_t used = 0;  // clock
    float overlaps = 0;
  };
  using Set = std::array<Run, kWays>;
  Set& set_of(uint64_t end);
  Run take(uint64_t page, uint64_t pages, uint8_t& overlap);

  std::array<Set, kSets> sets_;
};

}  // namespace streamfs::learning
