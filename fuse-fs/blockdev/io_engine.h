// Reads and writes on one open file: through io_uring, or in the caller's thread where the kernel
// or a sandbox refuses rings.
//
// Thread safety: every method from any thread. A completion runs once, in the thread that asked: in
// its uring::drive() (io_uring), or before the call returns (system calls); it must not block.
// Crash: nothing is kept; what was written is the file's affair.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/types.h"

namespace streamfs::blockdev {

using IoDone = std::function<void(Result<void>)>;

class IoEngine {
 public:
  virtual ~IoEngine() = default;  // waits for what this thread has in flight; nobody else may
  virtual const char* name() const = 0;
  virtual bool takes_streams() const = 0;
  // All bytes or an error. Short transfers are continued; what lies past the end is EIO, also where
  // the end has moved since (the kernel says ENOSPC to a write past a block device's). `stream` is
  // one of the kernel's write streams (write_streams.h), 0 for none; who takes none ignores it.
  virtual void write(uint64_t offset, ConstBytes bytes, uint8_t stream, IoDone done) = 0;
  virtual void read(uint64_t offset, Bytes bytes, IoDone done) = 0;
  virtual Result<void> fdatasync() = 0;
};

inline constexpr unsigned kDefaultQueueDepth = 128;

// fdatasync(2), in this thread: io_uring would wake one of the kernel's to do it.
Result<void> sync_file(int fd);

// What a write's error, a positive errno, is told as.
Error failed_write(int fd, uint64_t end, int code);

// Does not own `fd`.
std::unique_ptr<IoEngine> make_io_engine(int fd, unsigned depth = kDefaultQueueDepth);
// `why` it is that one, for people, behind its name.
std::unique_ptr<IoEngine> make_synchronous_engine(int fd, const std::string& why = {});

}  // namespace streamfs::blockdev
