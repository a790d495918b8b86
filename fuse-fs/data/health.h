// Whether the filesystem may still change. Once it may not, it never may again in this mount.
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
  // The first reason is kept, logged and shown.
  void degrade(const std::string& reason);
  bool degraded() const;
  std::string reason() const;

 private:
  std::atomic<bool> read_only_;
  mutable Mutex mutex_;  // leaf
  std::string reason_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::data
