#include "fuse-fs/frontend/full_disk.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/types.h"

namespace streamfs::frontend {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;
constexpr uint64_t kDirtyLeastBytes = 32 * kMib;  // of what the kernel may hold dirty
constexpr uint64_t kNearBytes = 192 * kMib;       // more than the kernel has under way at once
constexpr uint64_t kLookLeastBytes = 4 * kMib, kLookMostBytes = 256 * kMib;
// Over io_uring each waiting GETATTR occupies one of a queue's few entries.
constexpr size_t kWaitingMost = 2;
constexpr unsigned kRoundsMost = 4;  // while a writer goes on
// A loss nobody asked about. Sooner if there is space again: a new writer had nothing to do with
// it.
constexpr uint64_t kToldWithinMs = 30'000, kToldWithinIfSpaceMs = 1'000;
constexpr uint64_t kForgetMs = 50;
constexpr uint64_t kUnderWayMs = 1'000;  // a write(2) that did not ask
constexpr uint64_t kSpaceBytes = 16 * kMib;

// What the kernel holds dirty of all filesystems with its own defaults, about.
uint64_t usual_dirty_bytes() {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 10;
}

std::optional<uint64_t> dirty_limit(uint64_t free_bytes) {
  const uint64_t limit = std::max(kDirtyLeastBytes, free_bytes / 4);
  return limit < usual_dirty_bytes() ? std::optional(limit) : std::nullopt;
}

// Whether a change is worth a write to sysfs.
bool differs(std::optional<uint64_t> a, std::optional<uint64_t> b) {
  if (!a || !b) return a.has_value() != b.has_value();
  return std::max(*a, *b) - std::min(*a, *b) > *a / 8;
}

}  // namespace

void FullDisk::start(Hooks hooks) {
  hooks_ = std::move(hooks);
  active_.store(true, std::memory_order_release);
  thread_ = std::thread([this] { run(); });
}

void FullDisk::stop() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  active_.store(false, std::memory_order_release);
  Tellers tellers;
  {
    const MutexLock lock(mutex_);
    for (auto& [id, loss] : losses_) std::ranges::move(loss.tellers, std::back_inserter(tellers));
    losses_.clear();
    count();
  }
  for (const auto& tell : tellers) tell();
}

void FullDisk::wrote(uint64_t bytes) {
  const auto count = static_cast<int64_t>(bytes);
  const int64_t before = until_look_.fetch_sub(count, std::memory_order_relaxed);
  if (before <= 0 || before > count) return;
  {
    const MutexLock lock(mutex_);
    look_due_ = true;
  }
  changed_.notify_one();
}

void FullDisk::not_stored(InodeId id, uint64_t offset) {
  if (!active_.load(std::memory_order_acquire)) return;
  {
    const MutexLock lock(mutex_);
    near_.store(true, std::memory_order_relaxed);
    Loss& loss =
        losses_.try_emplace(id, Loss{.from = offset, .since_ms = 0, .tellers = {}}).first->second;
    loss.from = std::min(loss.from, offset);
    loss.since_ms = clock_.monotonic_ms();
    loss.told = false;
    queue(id, loss);
    count();
  }
  changed_.notify_one();
}

void FullDisk::queue(InodeId id, Loss& loss) {
  if (std::exchange(loss.queued, true)) return;
  queue_.push_back(id);
}

void FullDisk::count() {
  losses_count_.store(losses_.size(), std::memory_order_release);
}

std::optional<uint64_t> FullDisk::lost_from(InodeId id) {
  if (losses_count_.load(std::memory_order_acquire) == 0) return std::nullopt;
  const MutexLock lock(mutex_);
  const auto found = losses_.find(id);
  if (found == losses_.end()) return std::nullopt;
  return found->second.from;
}

bool FullDisk::is_losing(InodeId id) {
  if (losses_count_.load(std::memory_order_acquire) == 0) return false;
  const MutexLock lock(mutex_);
  const auto found = losses_.find(id);
  return found != losses_.end() && !found->second.told;
}

bool FullDisk::ask(InodeId id, std::function<void()> tell) {
  if (losses_count_.load(std::memory_order_acquire) == 0) return false;
  const uint64_t free = hooks_.free_bytes();
  {
    const MutexLock lock(mutex_);
    const auto found = losses_.find(id);
    if (found == losses_.end()) return false;
    Loss& loss = found->second;
    if (loss.told) return false;
    if (is_over(loss, free)) {
      losses_.erase(found);
      count();
      return false;
    }
    if (waiting_ < kWaitingMost) {
      ++waiting_;
      loss.tellers.push_back(std::move(tell));
      queue(id, loss);
      tell = nullptr;
    }
  }
  if (tell)
    tell();
  else
    changed_.notify_one();
  return true;
}

void FullDisk::settled_elsewhere(InodeId id) {
  if (losses_count_.load(std::memory_order_acquire) == 0) return;
  const MutexLock lock(mutex_);
  const auto found = losses_.find(id);
  if (found == losses_.end() || !found->second.tellers.empty()) return;
  losses_.erase(found);
  count();
}

bool FullDisk::corrects(pid_t thread, InodeId id) const {
  return active_.load(std::memory_order_acquire) && hooks_.corrects(thread, id);
}

void FullDisk::run() {
  pthread_setname_np(pthread_self(), "fs-full-disk");
  for (;;) {
    std::optional<InodeId> next;
    const uint64_t free = hooks_.free_bytes();
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && !look_due_ && queue_.empty()) {
        if (losses_.empty())
          changed_.wait(mutex_);
        else if (changed_.wait_for(mutex_, std::chrono::seconds(1)) == std::cv_status::timeout)
          drop_old(free);
      }
      if (stopping_) return;
      if (!std::exchange(look_due_, false)) {
        next = queue_.front();
        queue_.pop_front();
      }
    }
    if (next)
      settle(*next);
    else
      look();
  }
}

// How much there is, and after how many bytes to look again.
void FullDisk::look() {
  const uint64_t free = hooks_.free_bytes();
  near_.store(free < kNearBytes, std::memory_order_relaxed);
  const auto wanted = dirty_limit(free);
  if (differs(limit_, wanted)) {
    limit_ = wanted;
    hooks_.limit_dirty(wanted);
  }
  const uint64_t next = std::clamp(free / 8, kLookLeastBytes, kLookMostBytes);
  until_look_.store(static_cast<int64_t>(next), std::memory_order_relaxed);
}

void FullDisk::settle(InodeId id) {
  bool asked = false;
  {
    const MutexLock lock(mutex_);
    const auto found = losses_.find(id);
    if (found == losses_.end()) return;
    found->second.queued = false;
    asked = !found->second.tellers.empty();
  }
  hooks_.expire_attributes(id);
  if (!hooks_.is_removed(id)) write_back_and_correct(id, asked);
  look();
  Tellers tellers = settled(id);
  if (tellers.empty()) return;
  hooks_.reply_later([tellers = std::move(tellers)] {
    for (const auto& tell : tellers) tell();
  });
}

void FullDisk::write_back_and_correct(InodeId id, bool asked) {
  settling_.store(id.value, std::memory_order_release);
  hooks_.wait_for_writers(id);
  hooks_.write_back(id);
  if (asked) hooks_.take_error(id);
  hooks_.correct_size(id);
  if (hooks_.is_removed(id))
    holds_removed_until_ms_.store(clock_.monotonic_ms() + kForgetMs, std::memory_order_release);
  settling_.store(0, std::memory_order_release);
}

bool FullDisk::holds_removed() const {
  if (!active_.load(std::memory_order_acquire)) return false;
  const InodeId id{settling_.load(std::memory_order_acquire)};
  if (id.value != 0 && hooks_.is_removed(id)) return true;
  return clock_.monotonic_ms() < holds_removed_until_ms_.load(std::memory_order_acquire);
}

// More was lost meanwhile: once more, but not for ever.
FullDisk::Tellers FullDisk::settled(InodeId id) {
  const MutexLock lock(mutex_);
  const auto found = losses_.find(id);
  if (found == losses_.end()) return {};
  Loss& loss = found->second;
  if (loss.queued && ++loss.rounds < kRoundsMost) return {};
  loss.rounds = 0;
  Tellers tellers = std::exchange(loss.tellers, {});
  waiting_ -= tellers.size();
  loss.told = loss.told || (!tellers.empty() && !loss.queued);
  return tellers;
}

bool FullDisk::is_over(const Loss& loss, uint64_t free_bytes) const {
  if (loss.queued || !loss.tellers.empty()) return false;
  const uint64_t age = clock_.monotonic_ms() - loss.since_ms;
  if (loss.told) return age > kUnderWayMs;
  return age > kToldWithinMs || (age > kToldWithinIfSpaceMs && free_bytes >= kSpaceBytes);
}

void FullDisk::drop_old(uint64_t free_bytes) {
  for (auto each = losses_.begin(); each != losses_.end();)
    each = is_over(each->second, free_bytes) ? losses_.erase(each) : std::next(each);
  count();
}

}  // namespace streamfs::frontend
