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

// Asks again afterwards: the device may report one error to either of two concurrent flushes.
Result<void> FinalFlushDevice::flush() {
  SFS_TRY(failure());
  const Result<void> done = beneath_.flush();
  if (done.ok()) return failure();
  const MutexLock lock(mutex_);
  if (failed_.ok()) failed_ = done;
  has_failed_.store(true, std::memory_order_release);
  return done;
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
