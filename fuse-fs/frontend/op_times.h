// Measures how long requests take, by operation: from when libfuse hands one over until it is
// answered. This includes waiting for a worker, but not waiting in the kernel's queue.
//
// ops.cc names the operation of each handler (kTimed), and run() in context.h adds the time at its
// end. FORGET, which has no answer, and OPEN and RELEASE, which are answered at once, are not
// timed.
//
// Thread safety: any thread. Threads count apart (base/thread_histograms.h): a request takes two
// readings of the clock and two atomic additions.
#pragma once

#include <fuse_lowlevel.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/log_histogram.h"
#include "base/thread_histograms.h"

namespace streamfs::frontend {

enum class Op : uint8_t {
  kLookup,
  kMknod,
  kMkdir,
  kSymlink,
  kCreate,
  kTmpfile,
  kLink,
  kUnlink,
  kRmdir,
  kRename,
  kReaddir,
  kReaddirplus,
  kFsyncdir,
  kGetattr,
  kSetattr,
  kReadlink,
  kGetxattr,
  kSetxattr,
  kListxattr,
  kRemovexattr,
  kRead,
  kWrite,
  kFsync,
  kFallocate,
  kLseek,
  kIoctl,
  kStatfs,
  kStatx,
};
inline constexpr std::array<const char*, 28> kOpNames = {
    "lookup",  "mknod",    "mkdir",     "symlink",  "create",      "tmpfile",     "link",
    "unlink",  "rmdir",    "rename",    "readdir",  "readdirplus", "fsyncdir",    "getattr",
    "setattr", "readlink", "getxattr",  "setxattr", "listxattr",   "removexattr", "read",
    "write",   "fsync",    "fallocate", "lseek",    "ioctl",       "statfs",      "statx"};
static_assert(kOpNames.size() == static_cast<size_t>(Op::kStatx) + 1);

class OpTimes {
 public:
  void add(Op op, uint64_t ns) { histograms_.add(static_cast<size_t>(op), ns); }
  LogHistogram of(Op op) const { return histograms_.sum(static_cast<size_t>(op)); }

 private:
  ThreadHistograms<kOpNames.size()> histograms_;
};

// The operation and start time of a request. It is copied to the thread that ends the request.
class OpWatch {
 public:
  // Returns the watch of the request that this thread has in hand.
  static OpWatch& in_hand() {
    thread_local OpWatch mine;
    return mine;
  }
  static void take_up(Op op) { in_hand() = {op, now_ns()}; }
  Op op() const { return op_; }
  void end(OpTimes& times) const { times.add(op_, now_ns() - begun_ns_); }

 private:
  OpWatch() = default;
  OpWatch(Op op, uint64_t begun_ns) : op_(op), begun_ns_(begun_ns) {}
  static uint64_t now_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
  }
  Op op_ = Op::kLookup;
  uint64_t begun_ns_ = 0;
};

// kTimed<Op::kLookup, op::lookup>: the handler, as fuse_lowlevel_ops takes it.
template <auto kHandler>
struct Timed;
template <typename... Args, void (*kHandler)(fuse_req_t, Args...)>
struct Timed<kHandler> {
  template <Op kOp>
  static void call(fuse_req_t req, Args... args) {
    OpWatch::take_up(kOp);
    kHandler(req, args...);
  }
};
template <Op kOp, auto kHandler>
inline constexpr auto kTimed = &Timed<kHandler>::template call<kOp>;

}  // namespace streamfs::frontend
