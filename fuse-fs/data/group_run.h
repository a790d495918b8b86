// Lets concurrent callers share an action, such as a flush of the device.
//
// run() returns once an action that started after the call has ended, with the result of that
// action or of a later one. Callers that come while an action runs wait for the next action and
// share it.
// run_until() asks each caller's question before the first action and after every action: an action
// that is already running may be enough for one caller and too early for another.
// A waiting thread is woken once: when its question is answered, or when it is its turn to act.
// Waking all threads after each action would cost more than a flush.
//
// Thread safety: any thread. The action runs on one caller's thread, with no lock held. Any
// caller's thread may ask a question, under mutex_; a question may take leaf locks only.
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
  // Runs actions, or waits for those of other callers, until `done` answers true. Errors: an action
  // that this caller runs fails; the call then returns at once. If another caller's action fails,
  // that caller alone gets the error, and this one goes on with the next action.
  Result<void> run_until(const Question& done, const Action& action);

 private:
  enum class Turn : uint32_t { kWait, kDone, kAct };
  struct Waiter {
    explicit Waiter(const Question& question) : done(question) {}
    const Question& done;  // valid until `turn` is set
    Turn next = Turn::kWait;
    std::atomic<Turn> turn{Turn::kWait};
  };
  // shared_ptr: the waking thread may still use a Waiter whose own thread has returned.
  using Waiters = std::vector<std::shared_ptr<Waiter>>;

  Result<void> act_until(const Question& done, const Action& action);
  Waiters next_turns(bool leaves) SFS_REQUIRES(mutex_);

  Mutex mutex_;  // not held while the action runs
  Waiters waiters_ SFS_GUARDED_BY(mutex_);
  bool running_ SFS_GUARDED_BY(mutex_) = false;  // or a waiter was told to act
  uint64_t started_ SFS_GUARDED_BY(mutex_) = 0, finished_ SFS_GUARDED_BY(mutex_) = 0;
  Result<void> result_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::data
