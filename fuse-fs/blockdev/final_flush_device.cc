#include "fuse-fs/blockdev/final_flush_device.h"

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::blockdev {

Result<void> FinalFlushDevice::failure() const {
  if (!has_failed_.load(std::memory_order_acquire)) return {};
  const MutexLock lock(mutex_);
  return failed_;
}

void FinalFlushDevice::write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) {
  if (Result<void> failed = failure(); !failed.ok()) return done(std::move(failed));
  beneath_.write(first, bytes, tag, std::move(done));
}

// The device may report one error to any one of several concurrent flushes. A flush that succeeded
// therefore waits for the result of every flush that began before it ended.
Result<void> FinalFlushDevice::flush() {
  SFS_TRY(failure());
  uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    number = ++last_begun_;
    running_.insert(number);
  }
  Result<void> done = beneath_.flush();
  const MutexLock lock(mutex_);
  running_.erase(number);
  if (!done.ok() && failed_.ok()) {
    failed_ = std::move(done);
    has_failed_.store(true, std::memory_order_release);
  }
  ended_.notify_all();
  const uint64_t overlapping = last_begun_;
  while (failed_.ok() && !running_.empty() && *running_.begin() <= overlapping) ended_.wait(mutex_);
  return failed_;
}

Result<void> FinalFlushDevice::trim(BlockNo first, uint64_t count) {
  SFS_TRY(failure());
  return beneath_.trim(first, count);
}

Result<void> FinalFlushDevice::release(PStreamId stream) {
  SFS_TRY(failure());
  return beneath_.release(stream);
}

Result<IdleWork> FinalFlushDevice::begin_idle(const IdleLimits& limits) {
  SFS_TRY(failure());
  return beneath_.begin_idle(limits);
}

Result<IdleWork> FinalFlushDevice::prepare_poweroff(const IdleLimits& limits) {
  SFS_TRY(flush());
  return beneath_.prepare_poweroff(limits);
}

}  // namespace streamfs::blockdev
