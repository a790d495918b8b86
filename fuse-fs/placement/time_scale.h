// Converts a lifetime in pages into time, by the recent rate of writing.
// Keeps fewer than 1,024 samples, and thins out the older ones.
// Thread safety: none; the caller serialises all calls. After a crash: memory only.
#pragma once

#include <cstdint>
#include <vector>

namespace streamfs::placement {

class TimeScale {
 public:
  // Notes that the device's clock is `clock_pages` now. Does nothing if nothing was written since
  // the last sample. Requires: neither argument goes back.
  void sample(uint64_t clock_pages, uint64_t now_ms);
  // Returns the time that the last `pages` pages took to write. If the samples do not reach back so
  // far, extrapolates their mean rate. Returns 0 with fewer than two samples.
  uint64_t duration_ms(double pages) const;

 private:
  struct Point {
    uint64_t clock, ms;
  };
  std::vector<Point> points_;  // ascending
};

}  // namespace streamfs::placement
