// Keeps the WRITEs of one file in order while a disk is nearly full.
//
// The kernel writes dirty pages back in ascending order and has many WRITEs under way at once. If a
// later one took the last blocks, an earlier one would leave a hole where pages were dropped. So a
// WRITE beyond the file's end waits for those at lower offsets.
//
// Thread safety: any thread. A WRITE waits only for WRITEs that a thread is already serving, so one
// of all waiting threads goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "base/types.h"

namespace streamfs::frontend {

class WriteOrder {
 public:
  // A WRITE that is being served.
  class Turn {
   public:
    Turn(WriteOrder& order, InodeId id, uint64_t offset);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    // Returns once `may_go`, or when no WRITE at a lower offset is under way and none came for a
    // moment.
    void wait_until(const std::function<bool()>& may_go);

   private:
    WriteOrder& order_;
    const InodeId id_;
    const uint64_t offset_;
  };

 private:
  bool has_lower(InodeId id, uint64_t offset) const SFS_REQUIRES(mutex_);

  Mutex mutex_;  // before the filesystem's
  CondVar ended_;
  std::multiset<std::pair<uint64_t, uint64_t>> served_ SFS_GUARDED_BY(mutex_);  // inode, offset
};

}  // namespace streamfs::frontend
