#include "fuse-fs/data/range_lock.h"

#include <cstdint>
#include <list>

#include "base/mutex.h"
#include "base/waiting.h"

namespace streamfs::data {

bool RangeLock::must_wait(std::list<Range>::const_iterator self) const {
  for (auto before = ranges_.begin(); before != self; ++before) {
    const bool overlap = before->first <= self->last && self->first <= before->last;
    const bool both_read = before->access == Access::kShared && self->access == Access::kShared;
    if (overlap && !both_read) return true;
  }
  return false;
}

RangeLock::Guard::Guard(RangeLock& lock, uint64_t first, uint64_t last, Access access)
    : lock_(lock) {
  const MutexLock held(lock_.mutex_);
  self_ = lock_.ranges_.insert(lock_.ranges_.end(), {first, last, access});
  while (lock_.must_wait(self_)) {
    if (!may_wait()) {
      lock_.ranges_.erase(self_);  // the newest range: no other range waits for it
      holds_ = false;
      return;
    }
    lock_.changed_.wait(lock_.mutex_);
  }
}

RangeLock::Guard::~Guard() {
  if (!holds_) return;
  bool others = false;
  {
    const MutexLock held(lock_.mutex_);
    lock_.ranges_.erase(self_);
    others = !lock_.ranges_.empty();
  }
  if (others) lock_.changed_.notify_all();
}

}  // namespace streamfs::data
