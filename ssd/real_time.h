// Real time: a host that waits on the wall as long as the NAND would have taken. The latency model
// (latency.h) has a third host for it, whose clock starts when the device is opened and runs
// 1 ÷ factor as fast as the wall's.
//
// Thread safety: RealTime is constant; an Acknowledgement is one thread's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace streamfs::ssd {

// When a request may return. The caller waits, in its own thread and holding no lock.
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
  explicit RealTime(double factor) : factor_(factor) {}  // latencies are so many times the model's
  bool on() const { return factor_ > 0; }

  // On the clock of the model's third host.
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
