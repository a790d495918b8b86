// Real time: a host that waits in wall-clock time as long as the NAND would take. It is the third
// host of the latency model (latency.h). Its clock starts when the device is opened and runs
// 1 ÷ factor as fast as the wall clock.
//
// Thread safety: RealTime is constant; an Acknowledgement is one thread's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace streamfs::ssd {

// The time before which a request must not return. The caller waits in its own thread, without a
// lock.
class Acknowledgement {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void not_before(Time time) { at_ = std::max(at_, time); }
  Time at() const { return at_; }
  void wait() const {
    if (at_ != Time::min()) std::this_thread::sleep_until(at_);
  }

 private:
  Time at_ = Time::min();
};

class RealTime {
 public:
  explicit RealTime(double factor) : factor_(factor) {}  // wall latency ÷ model latency; 0: off
  bool on() const { return factor_ > 0; }

  // Returns the time on the third host's clock; 0 if off.
  uint64_t now_ns() const {
    if (!on()) return 0;
    const std::chrono::nanoseconds since = std::chrono::steady_clock::now() - start_;
    return static_cast<uint64_t>(static_cast<double>(since.count()) / factor_);
  }
  Acknowledgement::Time at(uint64_t ns) const {
    return start_ +
           std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(ns) * factor_));
  }

 private:
  double factor_;
  Acknowledgement::Time start_ = std::chrono::steady_clock::now();
};

}  // namespace streamfs::ssd
