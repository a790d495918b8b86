// The size the kernel shows of a file whose dirty pages could not be stored.
//
// With the write-back cache the kernel trusts its own size (fuse_get_cache_mask() in fs/fuse), also
// after the pages beyond the stored end were dropped. Only a truncation through the mount changes
// it, and the kernel then takes the size from our reply to SETATTR. So correct() truncates, and the
// handler of that request replies what is stored.
//
// Thread safety: all on one thread, which never replies to requests, but asked_by_us() on any.
// Needs CAP_DAC_READ_SEARCH and CAP_SYS_ADMIN.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"

namespace streamfs::frontend {

class CachedSize {
 public:
  CachedSize(std::string mountpoint, dev_t device)
      : mountpoint_(std::move(mountpoint)), device_(device) {}

  struct Inode {
    uint64_t number;  // the kernel's
    uint32_t generation;
    uint64_t size;  // as stored
  };
  // Returns when each write(2) to the inode that holds its lock has ended, and those that wait for
  // the lock have it next.
  Result<void> wait_for_writers(Inode inode);
  // Makes the kernel ask for the size. The caller has had the dirty pages written back. ESTALE: the
  // kernel does not know the inode; EPERM: not permitted; ETXTBSY: it is being executed.
  Result<void> correct(Inode inode);
  // Takes the error of write-back that the next close(2) would tell.
  Result<void> take_error(Inode inode);
  // Whether the SETATTR of this thread for this inode is correct()'s.
  bool asked_by_us(pid_t thread, uint64_t inode) const {
    return thread == thread_.load(std::memory_order_relaxed) &&
           inode == inode_.load(std::memory_order_relaxed);
  }

 private:
  Result<int> open_inode(Inode inode) const;

  const std::string mountpoint_;
  const dev_t device_;
  std::atomic<pid_t> thread_{0};
  std::atomic<uint64_t> inode_{0};
};

}  // namespace streamfs::frontend
