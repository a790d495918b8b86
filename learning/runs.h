// Writes that go on where an earlier one ended: appends, copies, log tails. A write that begins up
// to eight pages before a run's end continues it and rewrites its tail, as an append to a log does
// whose last page was only half full.
// Thread safety: none. Crash: memory only.
#pragma once

#include <array>
#include <cstdint>

namespace streamfs::learning {

// What a request is to the run it continues or begins.
struct RunPlace {
  uint64_t before = 0;  // pages the run had
  uint8_t overlap = 0;  // pages of its tail that are rewritten
  bool continues = false;
  float overlaps = 0;  // how often that happens in this run, lately: 0 to 1
};

class Runs {
 public:
  // A request of `pages` pages from `page` on; `clock` is when it comes.
  RunPlace place(uint64_t page, uint64_t pages, uint64_t clock);

 private:
  static constexpr uint32_t kSets = 64, kWays = 8;  // 512 runs
  static constexpr uint64_t kOverlapMax = 8;
  struct Run {
    uint64_t end = 0;  // page after its last; 0: none
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
