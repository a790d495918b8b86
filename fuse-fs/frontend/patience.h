// How long programs wait for an answer, and what ends it: a device that never answers holds them
// for ever, and nobody can take its requests back.
//
// Time is counted in looks of a thread of this process, not by a clock: a server that was stopped,
// by a debugger or with the machine, looks at nothing meanwhile, and so nobody has waited.
// Thread safety: InHand: any thread; look() from one. Crash: memory only.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "base/mutex.h"
#include "base/thread_counters.h"

namespace streamfs::frontend {

// Requests taken and not answered, counted by the look they were taken after.
class InHand {
 public:
  // Of requests older than this many looks the age is not told apart from younger ones'.
  static constexpr unsigned kLooks = 32;

  // What answered() is told when the request has its answer.
  unsigned taken() {
    const unsigned look = looks_.load(std::memory_order_relaxed) % kLooks;
    counters_.add(look, 1);
    return look;
  }
  void answered(unsigned look) { counters_.add(kLooks + look, 1); }
  // A request that first waits for others counts from its turn on: they count themselves.
  std::optional<unsigned> take(bool waits_for_others) {
    return waits_for_others ? std::nullopt : std::optional(taken());
  }
  class Elsewhere;
  // While a thread has a request in hand, which has its answer then.
  class Turn {
   public:
    Turn(InHand& requests, std::optional<unsigned> look)
        : requests_(requests), look_(look ? *look : requests.taken()) {
      mine() = this;
    }
    ~Turn() {
      mine() = nullptr;
      requests_.answered(look_);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    friend class Elsewhere;
    static Turn*& mine() {
      thread_local Turn* turn = nullptr;
      return turn;
    }
    InHand& requests_;
    unsigned look_;
  };
  // While this thread's request waits for other requests.
  class Elsewhere {
   public:
    Elsewhere() : turn_(Turn::mine()) {
      if (turn_ != nullptr) turn_->requests_.answered(turn_->look_);
    }
    ~Elsewhere() {
      if (turn_ != nullptr) turn_->look_ = turn_->requests_.taken();
    }
    Elsewhere(const Elsewhere&) = delete;
    Elsewhere& operator=(const Elsewhere&) = delete;

   private:
    Turn* const turn_;
  };

  // One more look: how many of them the oldest request has seen, this one included; 0 without any.
  unsigned look();

 private:
  std::atomic<unsigned> looks_{kLooks};
  ThreadCounters<size_t{2} * kLooks> counters_;
};

// Says when somebody waits long, and calls `give_up` once when the oldest request has waited for
// `limit`, or up to a tenth more.
class Patience {
 public:
  struct Limit {
    std::chrono::milliseconds limit;
    std::function<void()> give_up;  // on a thread of this object
  };
  Patience(InHand& in_hand, Limit limit);
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  static constexpr unsigned kLooksToLimit = 20, kLooksToWarning = 3;
  void run();
  bool pause();
  void say(unsigned looks);

  InHand& in_hand_;
  const Limit limit_;
  bool warned_ = false;  // the thread's own
  Mutex mutex_;          // leaf
  CondVar ended_;
  bool stopping_ SFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace streamfs::frontend
