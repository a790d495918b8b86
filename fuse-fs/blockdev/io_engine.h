// Reads and writes one open file: through io_uring, or by system calls in the caller's thread if
// the kernel or a sandbox refuses rings.
//
// Thread safety: every method from any thread. A completion runs once, in the thread that issued
// the request: in its uring::drive() (io_uring), or before the call returns (system calls). It must
// not block. Crash: see the file's own guarantees; a completed write is durable after fdatasync().
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
  // Waits for this thread's requests. Requires: no other thread has any in flight.
  virtual ~IoEngine() = default;
  virtual const char* name() const = 0;
  virtual bool takes_streams() const = 0;  // whether write() passes `stream` on to the kernel
  // Transfer all bytes or fail; short transfers are continued. `stream` is a write stream of the
  // kernel (write_streams.h), 0 for none; an engine that takes none ignores it.
  // Errors: EIO past the end of the device, for which the kernel returns ENOSPC to a write.
  virtual void write(uint64_t offset, ConstBytes bytes, uint8_t stream, IoDone done) = 0;
  virtual void read(uint64_t offset, Bytes bytes, IoDone done) = 0;
  virtual Result<void> fdatasync() = 0;
};

inline constexpr unsigned kDefaultQueueDepth = 128;

// Calls fdatasync(2) in this thread: io_uring would hand it to a kernel thread.
Result<void> sync_file(int fd);

// Returns the error for a write that failed with `code`, a positive errno: EIO instead of ENOSPC if
// `end`, the end of the write in bytes, is past the end of a block device.
Error failed_write(int fd, uint64_t end, int code);

// Returns an io_uring engine, or the synchronous one if rings are refused. Neither owns `fd`.
std::unique_ptr<IoEngine> make_io_engine(int fd, unsigned depth = kDefaultQueueDepth);
// `why` is appended to the engine's name, for people.
std::unique_ptr<IoEngine> make_synchronous_engine(int fd, const std::string& why = {});

}  // namespace streamfs::blockdev
