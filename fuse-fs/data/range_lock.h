// Locks ranges of one file, in order of arrival. Where ranges overlap, a writer excludes all others
// and a reader excludes writers. Not a mutex: it may be held across device I/O.
// Thread safety: any thread; a thread must not ask for a range that overlaps one it holds.
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
  // Holds [first, last] (any unit) while it lives. In a Trying (base/waiting.h) a
  // guard that would have to wait holds nothing and converts to false.
  class Guard {
   public:
    Guard(RangeLock& lock, uint64_t first, uint64_t last, Access access);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    explicit operator bool() const { return holds_; }

   private:
    RangeLock& lock_;
    bool holds_ = true;
    std::list<Range>::iterator self_;
  };

 private:
  bool must_wait(std::list<Range>::const_iterator self) const SFS_REQUIRES(mutex_);

  Mutex mutex_;  // leaf
  CondVar changed_;
  std::list<Range> ranges_ SFS_GUARDED_BY(mutex_);  // held or waiting, in order of arrival
};

}  // namespace streamfs::data
