// Many callers, one action: run() returns when an action that started after the call has ended.
// Whoever comes while one is running shares the next. The result is that of the action waited for,
// or of a later one.
//   run_until() asks each caller's own question first, and again after every action: an action that
// was already running may have been enough for one and too early for another.
// Who waits is woken once: when its question is answered, or to act in its turn. Waking all after
// each action cost more than the flush that they waited for.
// Thread safety: any thread. The action runs on one caller's thread, with no lock held; a caller's
// question is asked under the lock, by any of them, and may take leaves only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace streamfs::data {

class GroupRun {
 public:
  using Action = std::function<Result<void>()>;
  using Question = std::function<bool()>;

  Result<void> run(const Action& action);
  // Errors: those of an action that this caller ran.
  Result<void> run_until(const Question& done, const Action& action);

 private:
  enum class Turn : uint32_t { kWait, kDone, kAct };
  struct Waiter {
    explicit Waiter(const Question& question) : done(question) {}
    const Question& done;  // until there is a turn
    Turn next = Turn::kWait;
    std::atomic<Turn> turn{Turn::kWait};
  };
  // Shared with who wakes it, which may be at that still when it is gone.
  using Waiters = std::vector<std::shared_ptr<Waiter>>;

  Result<void> act_until(const Question& done, const Action& action);
  Waiters next_turns(bool leaves) SFS_REQUIRES(mutex_);

  Mutex mutex_;  // not held while the action runs
  Waiters waiters_ SFS_GUARDED_BY(mutex_);
  bool running_ SFS_GUARDED_BY(mutex_) = false;  // or somebody was told to act
  uint64_t started_ SFS_GUARDED_BY(mutex_) = 0, finished_ SFS_GUARDED_BY(mutex_) = 0;
  Result<void> result_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::data
