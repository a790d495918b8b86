#include "fuse-fs/frontend/ring_scheduling.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <thread>

#include "fuse-fs/frontend/ring_threads.h"

namespace streamfs::frontend {
namespace {

// The policy is chosen again after kRequests requests or kTime ns, whichever comes first. Beside a
// busy thread the CPU time of a SCHED_IDLE thread counts 341-fold (1024 / 3). Its wait afterwards
// grows with the requests that it served, so the interval is short.
constexpr uint64_t kRequests = 16, kTime = 4'000'000;
constexpr uint64_t kCountCpusEvery = 1'000'000'000;  // ns

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

unsigned online_cpus() {
  return static_cast<unsigned>(std::max(get_nprocs(), 1));
}

// Opens a file of the kernel's /proc. A container may have a FUSE filesystem in its place, which a
// ring thread must not wait for. -1: there is none.
int open_proc(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct statfs kind{};
  if (file >= 0 && fstatfs(file, &kind) == 0 && kind.f_type == PROC_SUPER_MAGIC) return file;
  if (file >= 0) close(file);
  return -1;
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
  idle_ = seen.now >= other_until_ && seen.runnable <= seen.cpus;
  return idle_;
}

bool may_use_sched_idle() {
  bool may = false;
  std::thread([&may] {
    cpu_set_t mine;
    may = sched_getaffinity(0, sizeof mine, &mine) == 0 &&
          static_cast<unsigned>(CPU_COUNT(&mine)) == online_cpus() && set_policy(SCHED_IDLE) &&
          set_policy(SCHED_OTHER);
  }).join();
  return may;
}

RingScheduler::RingScheduler(bool may)
    : RingScheduler(may, is_ring_thread() ? open_proc("/proc/loadavg") : -1) {}

RingScheduler::RingScheduler(bool may, int loadavg) : loadavg_(loadavg) {
  if (!is_ring_thread()) return;
  // At the end of a mount libfuse wakes ring threads, which then end, and also cancels them. A
  // cancellation in read() or close() would unwind functions that must not throw.
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  if (!may || sched_getscheduler(0) != SCHED_OTHER) return;
  schedstat_ = open_proc("/proc/thread-self/schedstat");
}

RingScheduler::~RingScheduler() {
  give_up();
}

void RingScheduler::request() {
  if (schedstat_ < 0 || loadavg_ < 0) return;
  const uint64_t now = now_ns();
  if (++requests_ >= kRequests || now - looked_ >= kTime) look(now);
}

void RingScheduler::look(uint64_t now) {
  const auto delay = number_in(schedstat_, "%*u %llu");
  const auto runnable = number_in(loadavg_, "%*f %*f %*f %llu/");
  if (!delay || !runnable) return give_up();
  if (cpus_ == 0 || now - counted_ >= kCountCpusEvery) {
    cpus_ = online_cpus();
    counted_ = now;
  }
  const bool idle =
      choice_.idle({now, *delay - delay_, requests_, static_cast<unsigned>(*runnable), cpus_});
  looked_ = now;
  delay_ = *delay;
  requests_ = 0;
  if (idle != idle_ && set_policy(idle ? SCHED_IDLE : SCHED_OTHER)) idle_ = idle;
}

void RingScheduler::give_up() {
  if (idle_) set_policy(SCHED_OTHER);
  idle_ = false;
  for (int* file : {&schedstat_, &loadavg_}) {
    if (*file >= 0) close(*file);
    *file = -1;
  }
}

}  // namespace streamfs::frontend
