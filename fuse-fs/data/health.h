// Whether the filesystem may still change, and whether its data can be read. Once not, never again
// in this mount.
// Thread safety: any thread.
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
  // Else DATA has nothing to do with what was written (owned_device.h).
  Result<void> readable() const {
    if (!lost_.load(std::memory_order_relaxed)) return {};
    return Error{EIO, reason()};
  }
  // The first reason is kept, logged and shown.
  void degrade(const std::string& reason);
  // And nothing can be read either: this reason counts for more.
  void lose(const std::string& reason);
  bool degraded() const;
  std::string reason() const;

 private:
  std::atomic<bool> read_only_, lost_{false};
  mutable Mutex mutex_;  // leaf
  std::string reason_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::data
