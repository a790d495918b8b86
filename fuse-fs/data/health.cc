#include "fuse-fs/data/health.h"

#include <spdlog/common.h>

#include <atomic>
#include <string>

#include "base/event.h"
#include "base/mutex.h"

namespace streamfs::data {

void Health::degrade(const std::string& reason) {
  {
    const MutexLock lock(mutex_);
    if (!reason_.empty()) return;
    reason_ = reason;
  }
  read_only_.store(true, std::memory_order_relaxed);
  log_event(Event::kReadOnly, spdlog::level::err, "read-only from now on: " + reason);
}

void Health::lose(const std::string& reason) {
  if (lost_.exchange(true)) return;
  read_only_.store(true, std::memory_order_relaxed);
  {
    const MutexLock lock(mutex_);
    reason_ = reason;
  }
  log_event(Event::kReadOnly, spdlog::level::err, "no reads and no writes from now on: " + reason);
}

bool Health::degraded() const {
  return !reason().empty();
}

std::string Health::reason() const {
  const MutexLock lock(mutex_);
  return reason_;
}

}  // namespace streamfs::data
