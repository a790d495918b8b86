// Many callers, one action: run() returns when an action that started after the call has ended.
// Whoever comes while one is running shares the next. The result is that of the action waited for,
// or of a later one.
//   run_until() asks each caller's own question first, and again after every action: an action that
// was already running may have been enough for one and too early for another.
// Thread safety: any thread. The action runs on one caller's thread, with no lock held; a caller's
// question is asked under the lock, and may take leaves only.
#pragma once

#include <cstdint>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"

namespace streamfs::data {

class GroupRun {
 public:
  template <typename Action>
  Result<void> run(const Action& action) {
    const MutexLock lock(mutex_);
    const uint64_t wanted = started_ + 1;
    while (finished_ < wanted) act_or_wait(action);
    return result_;
  }

  // Errors: those of an action that this caller ran.
  template <typename Done, typename Action>
  Result<void> run_until(const Done& done, const Action& action) {
    const MutexLock lock(mutex_);
    while (!done()) {
      const bool acted = act_or_wait(action);
      if (acted && !result_.ok()) return result_;
    }
    return {};
  }

 private:
  // True: it acted, and `result_` is its own.
  template <typename Action>
  bool act_or_wait(const Action& action) SFS_REQUIRES(mutex_) {
    if (running_) {
      ended_.wait(mutex_);
      return false;
    }
    running_ = true;
    const uint64_t mine = ++started_;
    mutex_.unlock();
    Result<void> done = action();
    mutex_.lock();
    running_ = false;
    finished_ = mine;
    result_ = std::move(done);
    ended_.notify_all();
    return true;
  }

  Mutex mutex_;  // not held while the action runs
  CondVar ended_;
  bool running_ SFS_GUARDED_BY(mutex_) = false;
  uint64_t started_ SFS_GUARDED_BY(mutex_) = 0, finished_ SFS_GUARDED_BY(mutex_) = 0;
  Result<void> result_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::data
