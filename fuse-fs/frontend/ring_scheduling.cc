#include "fuse-fs/frontend/ring_scheduling.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <optional>
#include <thread>

namespace streamfs::frontend {
namespace {

// The policy is chosen again after kRequests requests or kTime ns, whichever comes first. The CPU
// time of a SCHED_IDLE thread counts 341-fold, and a busy thread may run meanwhile. So a thread
// that served many requests beside one could wait for a second, and the interval is short.
constexpr uint64_t kRequests = 16, kTime = 4'000'000;

bool set_policy(int policy) {
  const sched_param none{};
  return sched_setscheduler(0, policy, &none) == 0;  // 0: the calling thread
}

// The resolution is a tick of the kernel, 1 to 10 ms.
uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Returns the number that `format` finds in an open file of /proc. It does not call pread(), which
// wait_trap.h takes for a wait.
std::optional<unsigned long long> number_in(int file, const char* format) {
  std::array<char, 128> text{};
  unsigned long long number = 0;
  if (lseek(file, 0, SEEK_SET) != 0 || read(file, text.data(), text.size() - 1) <= 0 ||
      std::sscanf(text.data(), format, &number) != 1)
    return std::nullopt;
  return number;
}

}  // namespace

bool IdleOrOther::idle(const Seen& seen) {
  const bool late = seen.delay > kDelayMax * std::max<uint64_t>(seen.requests, 1);
  if (idle_ && late) other_until_ = seen.now + kOtherFor;
  idle_ = seen.now >= other_until_ && seen.runnable <= cpus_;
  return idle_;
}

bool may_use_sched_idle() {
  bool may = false;
  std::thread([&may] { may = set_policy(SCHED_IDLE) && set_policy(SCHED_OTHER); }).join();
  return may;
}

RingScheduler::RingScheduler() : choice_(static_cast<unsigned>(std::max(get_nprocs(), 1))) {
  if (sched_getscheduler(0) != SCHED_OTHER) return;
  schedstat_ = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  loadavg_ = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
}

RingScheduler::~RingScheduler() {
  if (schedstat_ >= 0) close(schedstat_);
  if (loadavg_ >= 0) close(loadavg_);
}

void RingScheduler::request() {
  if (schedstat_ < 0 || loadavg_ < 0) return;
  const uint64_t now = now_ns();
  if (++requests_ >= kRequests || now - looked_ >= kTime) look(now);
}

void RingScheduler::look(uint64_t now) {
  const auto delay = number_in(schedstat_, "%*u %llu");
  const auto runnable = number_in(loadavg_, "%*f %*f %*f %llu/");
  if (!delay || !runnable) return;
  const bool idle =
      choice_.idle({now, *delay - delay_, requests_, static_cast<unsigned>(*runnable)});
  looked_ = now;
  delay_ = *delay;
  requests_ = 0;
  if (idle != idle_ && set_policy(idle ? SCHED_IDLE : SCHED_OTHER)) idle_ = idle;
}

}  // namespace streamfs::frontend
