// Where a request runs: on the thread that took it from the transport, or handed off.
//
// Three kinds of operations (the list is in the ops_*.cc files, one Wait at each run()):
//   kNever   no device I/O: always on the transport's thread, the cheapest reply there is.
//   kDevice  may wait for the device. Over /dev/fuse it waits where it is: there are more threads.
//            Over io_uring each processor has one thread for all of its requests, so it is handed
//            off.
//   kKernel  waits for other requests (the kernel writes a file's dirty pages back to us first).
//            Always handed off to a pool of its own: were every transport thread in one of these,
//            nobody would be left to take the WRITEs they wait for.
//
// Thread safety: run() from any thread. Exactly one reply is the task's own business.
#pragma once

#include <atomic>
#include <utility>

#include "base/assert.h"
#include "fuse-fs/frontend/worker_pool.h"

namespace streamfs::frontend {

enum class Wait : unsigned char { kNever, kDevice, kKernel };

// True while this thread runs a task that must not wait.
bool& waiting_forbidden();

class Dispatcher {
 public:
  Dispatcher() : device_("fs-device", 32), kernel_("fs-kernel", 16) {}

  // Decided at INIT, before any other request.
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

 private:
  std::atomic<bool> over_io_uring_{false};
  WorkerPool device_;
  WorkerPool kernel_;
};

}  // namespace streamfs::frontend
