#include "fuse-fs/data/group_run.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace streamfs::data {

Result<void> GroupRun::run(const Action& action) {
  uint64_t wanted = 0;
  {
    const MutexLock lock(mutex_);
    wanted = started_ + 1;
  }
  const auto done = [this, wanted]() SFS_NO_TSA { return finished_ >= wanted; };
  SFS_TRY(run_until(done, action));
  const MutexLock lock(mutex_);
  return result_;
}

Result<void> GroupRun::run_until(const Question& done, const Action& action) {
  std::shared_ptr<Waiter> waiter;
  {
    const MutexLock lock(mutex_);
    if (done()) return {};
    if (running_) {
      waiter = std::make_shared<Waiter>(done);
      waiters_.push_back(waiter);
    }
    running_ = true;
  }
  if (waiter != nullptr) {
    waiter->turn.wait(Turn::kWait, std::memory_order_acquire);
    if (waiter->turn.load(std::memory_order_acquire) == Turn::kDone) return {};
  }
  return act_until(done, action);
}

// Acts until `done`, and answers waiting threads. Only one thread at a time runs it.
Result<void> GroupRun::act_until(const Question& done, const Action& action) {
  while (true) {
    {
      const MutexLock lock(mutex_);
      ++started_;
    }
    const Result<void> result = action();
    bool leaves = false;
    Waiters woken;
    {
      const MutexLock lock(mutex_);
      finished_ = started_;
      result_ = result;
      leaves = !result.ok() || done();
      woken = next_turns(leaves);
    }
    for (const auto& waiter : woken) {
      waiter->turn.store(waiter->next, std::memory_order_release);
      waiter->turn.notify_one();
    }
    if (leaves) return result;
  }
}

// Returns the threads to wake: the next one to act if this one leaves, then those whose question is
// answered.
GroupRun::Waiters GroupRun::next_turns(bool leaves) {
  Waiters woken, rest;
  for (auto& waiter : waiters_) {
    waiter->next = waiter->done() ? Turn::kDone : Turn::kAct;
    (waiter->next == Turn::kDone ? woken : rest).push_back(std::move(waiter));
  }
  waiters_ = std::move(rest);
  if (!leaves) return woken;
  running_ = !waiters_.empty();
  if (!running_) return woken;
  woken.insert(woken.begin(), std::move(waiters_.front()));
  waiters_.erase(waiters_.begin());
  return woken;
}

}  // namespace streamfs::data
