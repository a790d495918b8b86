// Chooses where a request runs: on the thread that took it from the transport, or on a pool.
//
// There are three kinds of operations (the ops_*.cc files state one Wait at each run()):
//   kNever   No device I/O. It runs on the transport's thread, which makes the cheapest reply.
//   kDevice  It may wait for the device. Over /dev/fuse it waits on the transport's thread, because
//            there are more threads. Over io_uring each processor has one thread for all of its
//            requests, so it is handed off.
//   kKernel  It waits for other requests (the kernel first writes a file's dirty pages back). It is
//            handed off to a pool of its own: if all transport threads ran such operations, none
//            would be left to take the WRITEs that they wait for.
//
// A thread that pushes dirty pages never replies, and a thread that replies never pushes. Over
// io_uring the kernel hands a ring entry's next request to the thread that sent the last reply of
// that entry, as task work (fuse_uring_send_in_task). A thread that blocks uninterruptibly in the
// kernel until its own WRITE is answered would never run that work. So push() runs on threads of
// its own, and its caller waits in user space.
//
// Thread safety: any thread may call run(); any but a transport's thread may call push(). The task
// itself must reply exactly once.
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "base/assert.h"
#include "fuse-fs/frontend/worker_pool.h"

namespace streamfs::frontend {

enum class Wait : unsigned char { kNever, kDevice, kKernel };

// Is true while a ring's thread runs a task, which must not wait there. Always false over
// /dev/fuse.
bool& waiting_forbidden();

class Dispatcher {
 public:
  Dispatcher() : pushers_("fs-pusher", 16), device_("fs-device", 32), kernel_("fs-kernel", 16) {}

  // Requires: the handler of INIT calls it, before any other request.
  void set_over_io_uring(bool on) { over_io_uring_.store(on, std::memory_order_relaxed); }
  bool over_io_uring() const { return over_io_uring_.load(std::memory_order_relaxed); }

  template <typename Task>
  void run(Wait wait, Task&& task) {
    if (wait == Wait::kKernel) return kernel_.post(std::forward<Task>(task));
    if (wait == Wait::kDevice && over_io_uring()) return device_.post(std::forward<Task>(task));
    waiting_forbidden() = over_io_uring();
    task();
    waiting_forbidden() = false;
  }
  // Runs `push`, which makes the kernel write dirty pages back, on a thread for that, and returns
  // when it has returned.
  void push(const std::function<void()>& push);

 private:
  std::atomic<bool> over_io_uring_{false};
  WorkerPool pushers_;  // ends after the pools whose tasks wait for it
  WorkerPool device_;
  WorkerPool kernel_;
};

}  // namespace streamfs::frontend
