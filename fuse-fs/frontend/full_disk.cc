#include "fuse-fs/frontend/full_disk.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/types.h"

namespace streamfs::frontend {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;
constexpr uint64_t kDirtyLeastBytes = 32 * kMib;  // lower bound of the kernel's dirty limit
constexpr uint64_t kLookLeastBytes = 4 * kMib, kLookMostBytes = 256 * kMib;
// A loss that no write(2) asks about ends after kToldWithinMs; once there is space again, after
// kToldWithinIfSpaceMs, because a later writer did not cause it.
constexpr uint64_t kToldWithinMs = 30'000, kToldWithinIfSpaceMs = 1'000;
constexpr uint64_t kSpaceBytes = 16 * kMib;
constexpr uint64_t kUnderWayMs = 1'000;

// Returns about as much as the kernel, with its defaults, holds dirty of all filesystems together.
uint64_t usual_dirty_bytes() {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 10;
}

std::optional<uint64_t> dirty_limit(uint64_t free_bytes) {
  const uint64_t limit = std::max(kDirtyLeastBytes, free_bytes / 4);
  return limit < usual_dirty_bytes() ? std::optional(limit) : std::nullopt;
}

// Returns whether a change of the limit is worth a write to sysfs.
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
  const uint64_t now = clock_.monotonic_ms();
  {
    const MutexLock lock(mutex_);
    const auto [found, is_new] = losses_.try_emplace(id, Loss{offset, now});
    Loss& loss = found->second;
    loss.from = std::min(loss.from, offset);
    const bool again = loss.told && now - loss.since_ms > kUnderWayMs;
    if (again) loss = {offset, now};
    if (!loss.told) loss.since_ms = now;
    if (is_new || again) to_expire_.push_back(id);
    look_due_ = true;
    count();
  }
  changed_.notify_one();
}

void FullDisk::count() {
  losses_count_.store(losses_.size(), std::memory_order_release);
}

bool FullDisk::is_losing(InodeId id) const {
  if (losses_count_.load(std::memory_order_acquire) == 0) return false;
  const MutexLock lock(mutex_);
  const auto found = losses_.find(id);
  return found != losses_.end() && !found->second.told;
}

bool FullDisk::is_beyond_loss(InodeId id, uint64_t offset) const {
  if (losses_count_.load(std::memory_order_acquire) == 0) return false;
  const MutexLock lock(mutex_);
  const auto found = losses_.find(id);
  if (found == losses_.end() || offset < found->second.from) return false;
  const Loss& loss = found->second;
  return !loss.told || clock_.monotonic_ms() - loss.since_ms <= kUnderWayMs;
}

bool FullDisk::ask(InodeId id) {
  if (losses_count_.load(std::memory_order_acquire) == 0) return false;
  const uint64_t free = hooks_.free_bytes();
  const MutexLock lock(mutex_);
  const auto found = losses_.find(id);
  if (found == losses_.end()) return false;
  Loss& loss = found->second;
  if (is_over(loss, free)) {
    losses_.erase(found);
    count();
    return false;
  }
  if (loss.told) return false;
  loss.told = true;
  loss.since_ms = clock_.monotonic_ms();
  return true;
}

void FullDisk::forget(InodeId id) {
  if (losses_count_.load(std::memory_order_acquire) == 0) return;
  const MutexLock lock(mutex_);
  losses_.erase(id);
  count();
}

void FullDisk::run() {
  pthread_setname_np(pthread_self(), "fs-full-disk");
  for (;;) {
    std::deque<InodeId> expire;
    bool look_due = false;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && !look_due_ && to_expire_.empty()) changed_.wait(mutex_);
      if (stopping_) return;
      look_due = std::exchange(look_due_, false);
      expire.swap(to_expire_);
    }
    for (const InodeId id : expire) hooks_.expire_attributes(id);
    if (look_due) look();
  }
}

// Adapts the kernel's limit to the free space, and decides after how many bytes to look again.
void FullDisk::look() {
  const uint64_t free = hooks_.free_bytes();
  const auto wanted = dirty_limit(free);
  if (differs(limit_, wanted)) {
    limit_ = wanted;
    hooks_.limit_dirty(wanted);
  }
  const uint64_t next = std::clamp(free / 8, kLookLeastBytes, kLookMostBytes);
  until_look_.store(static_cast<int64_t>(next), std::memory_order_relaxed);
}

bool FullDisk::is_over(const Loss& loss, uint64_t free_bytes) const {
  const uint64_t age = clock_.monotonic_ms() - loss.since_ms;
  if (loss.told) return age > kUnderWayMs;
  return age > kToldWithinMs || (age > kToldWithinIfSpaceMs && free_bytes >= kSpaceBytes);
}

}  // namespace streamfs::frontend
