// Measures how long programs wait for answers, and ends waits that are too long. A device that
// never answers would hold programs for ever, because its requests cannot be taken back.
//
// Time is counted in looks of a thread of this process, not by a clock. A server that is stopped,
// by a debugger or with the machine, does not look meanwhile, so that time does not count.
// Thread safety: any thread may use InHand; one thread calls look().
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

// Counts the requests that are taken and not answered, by the look after which they were taken.
class InHand {
 public:
  // Ages are counted modulo kLooks: a request older than that seems younger.
  static constexpr unsigned kLooks = 32;

  // Counts a request. Returns the look to give to answered() when the request has its answer.
  unsigned taken() {
    const unsigned look = looks_.load(std::memory_order_relaxed) % kLooks;
    counters_.add(look, 1);
    return look;
  }
  void answered(unsigned look) { counters_.add(kLooks + look, 1); }
  // Counts a request, unless it first waits for other requests. Such a request counts from the
  // start of its Turn, because the others count themselves.
  std::optional<unsigned> take(bool waits_for_others) {
    return waits_for_others ? std::nullopt : std::optional(taken());
  }
  class Elsewhere;
  // Lives while a thread has a request in hand. `look` is the result of take(). At the Turn's end
  // the request has its answer, unless goes_on() was called.
  class Turn {
   public:
    Turn(InHand& requests, std::optional<unsigned> look)
        : requests_(requests), look_(look ? *look : requests.taken()) {
      mine() = this;
    }
    ~Turn() {
      mine() = nullptr;
      if (!goes_on_) requests_.answered(look_);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    // Leaves the request without an answer at the Turn's end. Another Turn with the same look goes
    // on with it.
    void goes_on() { goes_on_ = true; }

   private:
    friend class Elsewhere;
    static Turn*& mine() {
      thread_local Turn* turn = nullptr;
      return turn;
    }
    InHand& requests_;
    unsigned look_;
    bool goes_on_ = false;
  };
  // Lives while this thread's request waits for other requests. The request does not count then.
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

  // Takes one more look. Returns how many looks the oldest request has seen, this one included; 0
  // if there is no request.
  unsigned look();

 private:
  std::atomic<unsigned> looks_{kLooks};
  ThreadCounters<size_t{2} * kLooks> counters_;
};

// Logs a warning when a request waits long, and calls `give_up` once when the oldest request has
// waited for `limit`, or up to a twentieth more.
class Patience {
 public:
  struct Limit {
    std::chrono::milliseconds limit;
    std::function<void()> give_up;  // runs on a thread of this object, which then ends
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
  bool warned_ = false;  // used by the thread only
  Mutex mutex_;          // leaf
  CondVar ended_;
  bool stopping_ SFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace streamfs::frontend
