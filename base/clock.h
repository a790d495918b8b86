// Injected time. Thread safety: implementations are safe from any thread.
#pragma once

#include <cstdint>

namespace streamfs {

struct Timestamp {
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
  friend bool operator==(const Timestamp&, const Timestamp&) = default;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Timestamp now() = 0;          // wall clock; CLOCK_REALTIME_COARSE, as kernel inodes use
  virtual uint64_t monotonic_ms() = 0;  // for timers; CLOCK_MONOTONIC_COARSE
};

Clock& system_clock();

}  // namespace streamfs
