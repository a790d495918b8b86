#include "fuse-fs/blockdev/final_flush_device.h"

#include "base/mutex.h"
#include "base/result.h"

namespace streamfs::blockdev {

Result<void> FinalFlushDevice::failure() const {
  const MutexLock lock(mutex_);
  return failed_;
}

// Asked again afterwards: of two flushes at once the device may tell an error to either.
Result<void> FinalFlushDevice::flush() {
  SFS_TRY(failure());
  const Result<void> done = beneath_.flush();
  if (done.ok()) return failure();
  const MutexLock lock(mutex_);
  if (failed_.ok()) failed_ = done;
  return done;
}

}  // namespace streamfs::blockdev
