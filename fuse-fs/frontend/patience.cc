#include "fuse-fs/frontend/patience.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/mutex.h"

namespace streamfs::frontend {

unsigned InHand::look() {
  const unsigned now = looks_.fetch_add(1, std::memory_order_relaxed) + 1;
  for (unsigned age = kLooks - 1; age > 0; --age) {
    const unsigned slot = (now - age) % kLooks;
    // Ends are summed before begins. A request that begins and ends between the two sums then looks
    // unanswered; the other order could hide an unanswered one.
    const uint64_t ended = counters_.sum(kLooks + slot);
    if (counters_.sum(slot) > ended) return age;
  }
  return 0;
}

Patience::Patience(InHand& in_hand, Limit limit) : in_hand_(in_hand), limit_(std::move(limit)) {
  thread_ = std::thread([this] { run(); });
}

Patience::~Patience() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

bool Patience::pause() {
  const MutexLock lock(mutex_);
  if (!stopping_) ended_.wait_for(mutex_, limit_.limit / kLooksToLimit);
  return !stopping_;
}

void Patience::run() {
  while (pause()) {
    const unsigned looks = in_hand_.look();
    say(looks);
    if (looks > kLooksToLimit) return limit_.give_up();
  }
}

void Patience::say(unsigned looks) {
  const bool long_ago = looks > kLooksToWarning;
  if (long_ago == warned_) return;
  warned_ = long_ago;
  if (!long_ago) return spdlog::warn("all requests are answered again");
  const auto seconds = [&](unsigned n) {
    return std::chrono::duration<double>(limit_.limit).count() * n / kLooksToLimit;
  };
  spdlog::warn(
      "a request has waited {:.0f} s for its answer: does the data device answer? After {:.0f} s "
      "the mount ends, so that no program waits for ever",
      seconds(looks - 1), seconds(kLooksToLimit));
}

}  // namespace streamfs::frontend
