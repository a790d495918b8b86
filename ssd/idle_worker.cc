#include "ssd/idle_worker.h"

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "base/assert.h"
#include "base/mutex.h"
#include "ssd/background.h"
#include "ssd/ssd.h"

namespace streamfs::ssd {

IdleWorker::IdleWorker(Ssd& ssd, std::chrono::milliseconds period, const IdleLimits& limits)
    : ssd_(ssd), period_(period), limits_(limits) {
  limits_.stop = [this, also = limits.stop] { return (also && also()) || has_to_stop(); };
}

// Blocks all signals in the new thread: the other threads handle them.
void IdleWorker::start() {
  SFS_ASSERT(!thread_.joinable());
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

IdleWorker::~IdleWorker() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void IdleWorker::run() {
  uint64_t seen = ended_, finished = UINT64_MAX;  // ended_ at the last look; when all work was done
  while (pause()) {
    const uint64_t now = ended_;
    const bool quiet = under_way_ == 0 && now == seen;
    seen = now;
    if (!quiet || seen == finished) continue;
    if (ssd_.run_idle(limits_).end == IdleReport::End::kNothingLeft) finished = seen;
  }
}

// Waits for a period. Returns false if the thread must end.
bool IdleWorker::pause() {
  const MutexLock lock(mutex_);
  if (!stopping_) stop_.wait_for(mutex_, period_);
  return !stopping_;
}

}  // namespace streamfs::ssd
