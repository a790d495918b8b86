// Measures how long requests take, by operation: from when libfuse hands one over until it is
// answered. This includes waiting for a worker, but not waiting in the kernel's queue.
//
// ops.cc names the operation of each handler (kTimed), and run() in context.h adds the time at its
// end. FORGET, which has no answer, and OPEN and RELEASE, which are answered at once, are not
// timed.
//
// Thread safety: any thread. Threads count apart (base/thread_counters.h): a request takes two
// readings of the clock and two additions to a cache line of its own thread.
#pragma once

#include <fuse_lowlevel.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/thread_counters.h"

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
  // Bucket i counts requests that took at most 2^i µs and more than the bucket before; the last one
  // counts the rest.
  static constexpr size_t kBuckets = 24;
  static constexpr uint64_t bound_us(size_t bucket) { return uint64_t{1} << bucket; }

  struct Times {
    uint64_t sum_ns = 0;
    std::array<uint64_t, kBuckets> counts{};
  };

  void add(Op op, uint64_t ns) {
    const uint64_t us = (ns + 999) / 1000;
    const size_t bucket =
        us == 0 ? 0 : std::min<size_t>(static_cast<size_t>(std::bit_width(us - 1)), kBuckets - 1);
    counters_.add(first(op) + bucket, 1);
    counters_.add(first(op) + kBuckets, ns);
  }
  Times of(Op op) const {
    Times out;
    for (size_t i = 0; i < kBuckets; ++i) out.counts[i] = counters_.sum(first(op) + i);
    out.sum_ns = counters_.sum(first(op) + kBuckets);
    return out;
  }

 private:
  static constexpr size_t first(Op op) { return static_cast<size_t>(op) * (kBuckets + 1); }
  ThreadCounters<kOpNames.size() * (kBuckets + 1)> counters_;
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
