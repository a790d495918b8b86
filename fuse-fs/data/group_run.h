// Many callers, one action: run() returns when an action that started after the call has ended.
// Whoever comes while one is running shares the next. The result is that of the action waited for,
// or of a later one.
// Thread safety: any thread. The action runs on one caller's thread, with no lock held.
#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "base/result.h"

namespace streamfs::data {

class GroupRun {
 public:
  template <typename Action>
  Result<void> run(const Action& action) {
    mutex_.lock();
    const uint64_t wanted = started_ + 1;
    while (finished_ < wanted) {
      if (running_) {
        ended_.wait(mutex_);
        continue;
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
    }
    Result<void> result = result_;
    mutex_.unlock();
    return result;
  }

 private:
  Mutex mutex_;  // leaf; not held while the action runs
  CondVar ended_;
  bool running_ = false;
  uint64_t started_ = 0, finished_ = 0;
  Result<void> result_;
};

}  // namespace streamfs::data
