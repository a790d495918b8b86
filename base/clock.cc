#include "base/clock.h"

#include <time.h>

#include <cstdint>
#include <ctime>

namespace streamfs {
namespace {

class SystemClock final : public Clock {
 public:
  Timestamp now() override {
    timespec ts{};
    clock_gettime(CLOCK_REALTIME_COARSE, &ts);
    return {ts.tv_sec, static_cast<uint32_t>(ts.tv_nsec)};
  }
  uint64_t monotonic_ms() override {
    timespec ts{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return static_cast<uint64_t>(ts.tv_sec) * 1000 + static_cast<uint64_t>(ts.tv_nsec) / 1000000;
  }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace streamfs
