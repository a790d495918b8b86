// Chooses the scheduling policy of the threads that serve FUSE over io_uring.
//
// A ring thread replies on the CPU of its queue. If the scheduler considers that CPU idle, it wakes
// the program there. Otherwise it moves the program to an idle CPU, at the price of an interrupt of
// that CPU and of cold caches. A CPU whose runnable threads are all SCHED_IDLE counts as idle
// (sched_idle_cpu() in kernel/sched/fair.c). Ring threads are therefore SCHED_IDLE while there are
// idle CPUs.
//
// A SCHED_IDLE thread starves beside a busy thread of its control group: its weight is 3 to 1024.
// A ring thread is therefore SCHED_OTHER in two cases:
//   - more threads are runnable than the machine has CPUs;
//   - it waited longer than kDelayMax for its CPU, because a bound program can keep that CPU busy
//     while others are idle. It then stays SCHED_OTHER for kOtherFor.
// Source: measured in docs/EXPERIMENTS.md, "Mounts and transports".
//
// Thread safety: an IdleOrOther or RingScheduler belongs to one thread; may_use_sched_idle(), any.
#pragma once

#include <cstdint>

namespace streamfs::frontend {

// Decides between SCHED_IDLE and SCHED_OTHER. Times are in ns.
class IdleOrOther {
 public:
  static constexpr uint64_t kDelayMax = 100'000;        // mean wait for the CPU per request
  static constexpr uint64_t kOtherFor = 1'000'000'000;  // SCHED_OTHER after exceeding it

  struct Seen {
    uint64_t now = 0;
    uint64_t delay = 0;     // the thread's wait for its CPU since the last look
    uint64_t requests = 1;  // served since the last look
    unsigned runnable = 1;  // threads of the machine that run or wait for a CPU
    unsigned cpus = 1;      // of the machine, online
  };
  // Returns whether the thread is to be SCHED_IDLE until the next call.
  bool idle(const Seen& seen);

 private:
  uint64_t other_until_ = 0;
  bool idle_ = false;
};

// Returns whether this process may run on all CPUs, and may make a thread SCHED_IDLE and then
// SCHED_OTHER again. In a cpuset the number of runnable threads of the machine tells nothing. The
// return to SCHED_OTHER needs CAP_SYS_NICE or an RLIMIT_NICE of 20.
bool may_use_sched_idle();

class RingScheduler {
 public:
  // Keeps a ring thread from being cancelled. `may`: result of may_use_sched_idle(); if it is
  // false, request() does nothing.
  explicit RingScheduler(bool may);
  // Reads the number of runnable threads from `loadavg`, an open file in the format of
  // /proc/loadavg, which it takes over. For tests.
  RingScheduler(bool may, int loadavg);
  ~RingScheduler();
  RingScheduler(const RingScheduler&) = delete;
  RingScheduler& operator=(const RingScheduler&) = delete;

  // Counts a request of the calling thread. At intervals, samples the thread's delay and sets its
  // policy. Has no effect on a thread that is no ring thread or was not SCHED_OTHER at
  // construction. Once its delay cannot be read, the thread stays SCHED_OTHER. Requires: the
  // calling thread constructed this object.
  void request();

 private:
  void look(uint64_t now);
  void give_up();

  IdleOrOther choice_;
  int schedstat_ = -1, loadavg_ = -1;  // open files of /proc; -1: the policy stays
  bool idle_ = false;
  uint64_t looked_ = 0, delay_ = 0;  // at the last look
  uint64_t requests_ = 0;            // since then
  unsigned cpus_ = 0;                // online CPUs at the last count
  uint64_t counted_ = 0;             // time of the last count
};

}  // namespace streamfs::frontend
