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
  degrade(reason);
  lost_.store(true, std::memory_order_relaxed);
}

bool Health::degraded() const {
  return !reason().empty();
}

std::string Health::reason() const {
  const MutexLock lock(mutex_);
  return reason_;
}

}  // namespace streamfs::data
