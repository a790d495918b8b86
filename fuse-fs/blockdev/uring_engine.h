// IoEngine over io_uring: a ring for each thread, in which the data file is registered
// (uring/ring.h). A thread that gets no ring does synchronous I/O, and its writes name no stream.
// Thread safety and completions: see io_engine.h.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/io_engine.h"
#include "fuse-fs/uring/ring.h"

namespace streamfs::blockdev {

class UringEngine final : public IoEngine {
 public:
  // Borrows `fd`. `depth`: the most requests in flight in a ring. Errors: those of uring::Ring.
  static Result<std::unique_ptr<UringEngine>> open(int fd, unsigned depth);

  const char* name() const override { return "io_uring"; }
  bool takes_streams() const override { return true; }
  void write(uint64_t offset, ConstBytes bytes, uint8_t stream, IoDone done) override;
  void read(uint64_t offset, Bytes bytes, IoDone done) override;
  Result<void> fdatasync() override;

 private:
  UringEngine(int fd, std::unique_ptr<uring::Ring> ring)
      : fd_(fd), plain_(make_synchronous_engine(fd)), ring_(std::move(ring)) {}
  const int fd_;
  const std::unique_ptr<IoEngine> plain_;  // for threads that cannot get a ring
  const std::unique_ptr<uring::Ring> ring_;
};

}  // namespace streamfs::blockdev
