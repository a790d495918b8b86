// Tells whether the filesystem is writable and readable. Neither comes back during a mount.
// Thread safety: any thread. After a crash: memory only.
#pragma once

#include <atomic>
#include <string>

#include "base/mutex.h"
#include "base/result.h"

namespace streamfs::data {

class Health {
 public:
  explicit Health(bool read_only) : read_only_(read_only) {}
  Result<void> writable() const {
    if (!read_only_.load(std::memory_order_relaxed)) return {};
    return Error{EROFS};
  }
  // Errors: EIO after lose(): DATA is another filesystem's, or the mount was shut down.
  Result<void> readable() const {
    if (!lost_.load(std::memory_order_relaxed)) return {};
    return Error{EIO, reason()};
  }
  // Makes the filesystem read-only. Does nothing after an earlier degrade() or lose(); otherwise
  // logs and keeps the reason.
  void degrade(const std::string& reason);
  // Makes the filesystem neither readable nor writable. The first call logs its reason, which
  // replaces that of degrade().
  void lose(const std::string& reason);
  // Returns whether degrade() or lose() was called. A mount that began read-only is not degraded.
  bool degraded() const;
  std::string reason() const;

 private:
  std::atomic<bool> read_only_, lost_{false};
  mutable Mutex mutex_;  // leaf
  std::string reason_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::data
