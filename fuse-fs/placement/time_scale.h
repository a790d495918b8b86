// How long the device took to be written so many pages, lately: turns a lifetime in pages into
// time. Thread safety: external. Memory: bounded; the older, the coarser.
#pragma once

#include <cstdint>
#include <vector>

namespace streamfs::placement {

class TimeScale {
 public:
  void sample(uint64_t clock_pages, uint64_t now_ms);
  // Of the last `pages` pages written; extended at the oldest rate known. 0 without samples.
  uint64_t duration_ms(double pages) const;

 private:
  struct Point {
    uint64_t clock, ms;
  };
  std::vector<Point> points_;  // ascending
};

}  // namespace streamfs::placement
