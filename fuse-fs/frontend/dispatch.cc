#include "fuse-fs/frontend/dispatch.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "fuse-fs/frontend/ring_scheduling.h"
#include "fuse-fs/frontend/wait_trap.h"

namespace streamfs::frontend {
namespace {

bool& handing_off() {
  thread_local bool mine = false;
  return mine;
}

bool& holds_last_entry() {
  thread_local bool mine = false;
  return mine;
}

}  // namespace

Start start_of(Op op, bool names_wait) {
  switch (op) {
    case Op::kFallocate:
      return Start::kWorker;
    case Op::kLseek:
      return Start::kKernel;
    case Op::kMknod:
    case Op::kMkdir:
    case Op::kSymlink:
    case Op::kCreate:
    case Op::kTmpfile:
    case Op::kLink:
    case Op::kUnlink:
    case Op::kRmdir:
    case Op::kRename:
    case Op::kSetattr:
    case Op::kSetxattr:
    case Op::kRemovexattr:
    case Op::kIoctl:
      return names_wait ? Start::kWorker : Start::kTry;
    case Op::kLookup:
    case Op::kReaddir:
    case Op::kReaddirplus:
    case Op::kFsyncdir:
    case Op::kGetattr:
    case Op::kReadlink:
    case Op::kGetxattr:
    case Op::kListxattr:
    case Op::kRead:
    case Op::kWrite:
    case Op::kFsync:
    case Op::kStatfs:
    case Op::kStatx:
      return Start::kTry;
  }
  return Start::kWorker;
}

void hand_off() {
  handing_off() = true;
}

bool handed_off() {
  return handing_off();
}

Dispatcher::Dispatcher()
    : traps_waits_(traps_waits()), pushers_("fs-pusher", 16), kernel_("fs-kernel", 16) {}

void Dispatcher::begin_try() const {
  handing_off() = false;
  if (traps_waits_) trap_waits_of_a_ring();
}

// Sets the policy before the reply, which wakes the program.
void Dispatcher::take_from_ring() const {
  thread_local RingScheduler mine(schedules_rings_);
  mine.request();
}

void Dispatcher::expect_rings(unsigned entries, Wakes wakes) {
  const auto cpus = static_cast<unsigned>(std::max(get_nprocs_conf(), 1));
  entries_ = entries;
  in_kernel_ = std::make_unique<std::atomic<unsigned>[]>(cpus);
  // A queue has at most `entries` requests in hand, so its workers need no more threads.
  for (unsigned each = 0; each < cpus; ++each) {
    const auto cpu = wakes == Wakes::kSameCpu ? std::optional(each) : std::nullopt;
    workers_.push_back(
        std::make_unique<WorkerPool>(fmt::format("fs-worker-{}", each), entries, cpu));
  }
  schedules_rings_ = may_use_sched_idle();
}

// A ring thread stays on the processor of its queue, if the process may use that processor.
size_t Dispatcher::cpu() const {
  return static_cast<size_t>(std::max(sched_getcpu(), 0)) % workers_.size();
}

// The request with the last entry runs on a worker (dispatch.h).
void Dispatcher::run_on_kernel_pool(From from, std::function<void()> task) {
  if (from == From::kDevice) return kernel_.post(std::move(task));
  std::atomic<unsigned>& in_hand = in_kernel_[cpu()];
  const bool last = in_hand.fetch_add(1) + 1 >= entries_;
  (last ? here() : kernel_).post([last, &in_hand, task = std::move(task)] {
    holds_last_entry() = last;
    task();
    holds_last_entry() = false;
    in_hand.fetch_sub(1);
  });
}

void Dispatcher::finish() {
  kernel_.finish();
  for (const auto& each : workers_) each->finish();
}

bool Dispatcher::push(const std::function<void()>& push) {
  if (holds_last_entry()) return false;
  // Shared: the pusher may still be inside set_value() when the caller has gone on.
  const auto done = std::make_shared<std::promise<void>>();
  pushers_.post([&push, done] {
    push();
    done->set_value();
  });
  done->get_future().wait();
  return true;
}

}  // namespace streamfs::frontend
