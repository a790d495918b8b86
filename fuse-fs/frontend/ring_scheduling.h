// The scheduling policy of the threads that serve FUSE over io_uring.
//
// A ring thread runs on the CPU of its queue while it replies. If the scheduler considers that CPU
// idle, the program that gets the reply wakes where it slept. Otherwise the scheduler moves it to
// a CPU that is idle, which costs an interrupt of that CPU and the program's caches. The scheduler
// considers a CPU idle if all of its runnable threads are SCHED_IDLE (sched_idle_cpu() in
// kernel/sched/fair.c). So ring threads are SCHED_IDLE while there are idle CPUs.
//
// A SCHED_IDLE thread gets .3 % of a CPU that another thread of its control group keeps busy. So a
// ring thread is SCHED_OTHER while more threads are runnable than there are CPUs. A program bound
// to the CPU of the ring may keep it busy beside idle CPUs. So a ring thread that waits too long
// for its CPU is SCHED_OTHER for some time.
// Source: measured in docs/EXPERIMENTS.md, "Mounts and transports".
//
// Thread safety: RingScheduler is for the thread that calls it; the function, for any thread.
#pragma once

#include <cstdint>

namespace streamfs::frontend {

// Decides between SCHED_IDLE and SCHED_OTHER. Times are in ns.
class IdleOrOther {
 public:
  static constexpr uint64_t kDelayMax = 100'000;        // mean wait for the CPU per request
  static constexpr uint64_t kOtherFor = 1'000'000'000;  // after a wait that was longer

  struct Seen {
    uint64_t now = 0;
    uint64_t delay = 0;     // the thread's wait for its CPU since the last look
    uint64_t requests = 1;  // served since the last look
    unsigned runnable = 1;  // threads of the machine that run or wait for a CPU
  };
  explicit IdleOrOther(unsigned cpus) : cpus_(cpus) {}
  // Returns whether the thread is SCHED_IDLE until the next look.
  bool idle(const Seen& seen);

 private:
  const unsigned cpus_;
  uint64_t other_until_ = 0;
  bool idle_ = false;
};

// Returns whether this process may make a thread SCHED_IDLE and SCHED_OTHER again. The second needs
// CAP_SYS_NICE or an RLIMIT_NICE of 20.
bool may_use_sched_idle();

class RingScheduler {
 public:
  RingScheduler();
  ~RingScheduler();
  RingScheduler(const RingScheduler&) = delete;
  RingScheduler& operator=(const RingScheduler&) = delete;

  // Counts a request of the calling thread and, every few of them, sets the thread's policy. A
  // thread that was not SCHED_OTHER at the first call keeps its policy. Requires:
  // may_use_sched_idle().
  void request();

 private:
  void look(uint64_t now);

  IdleOrOther choice_;
  int schedstat_ = -1, loadavg_ = -1;  // open files of /proc; -1: the policy stays
  bool idle_ = false;
  uint64_t looked_ = 0, delay_ = 0;  // at the last look
  uint64_t requests_ = 0;            // since then
};

}  // namespace streamfs::frontend
