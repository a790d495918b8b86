// Locks ranges of one file: writers exclude everyone, readers exclude writers, in order of arrival.
// Not a mutex: it may be held across device I/O.
// Thread safety: any thread; one thread must not ask for overlapping ranges twice.
#pragma once

#include <cstdint>
#include <limits>
#include <list>

#include "base/mutex.h"

namespace streamfs::data {

class RangeLock {
 public:
  static constexpr uint64_t kToTheEnd = std::numeric_limits<uint64_t>::max();
  enum class Access : uint8_t { kShared, kExclusive };

 private:
  struct Range {
    uint64_t first, last;
    Access access;
  };

 public:
  // Holds [first, last] (any unit) while it lives.
  class Guard {
   public:
    Guard(RangeLock& lock, uint64_t first, uint64_t last, Access access);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    RangeLock& lock_;
    std::list<Range>::iterator self_;
  };

 private:
  bool must_wait(std::list<Range>::const_iterator self) const SFS_REQUIRES(mutex_);

  Mutex mutex_;  // leaf
  CondVar changed_;
  std::list<Range> ranges_ SFS_GUARDED_BY(mutex_);  // held and waited for, as they came
};

}  // namespace streamfs::data
