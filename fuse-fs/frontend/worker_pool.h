// Threads for tasks that must not run on a thread that serves the transport.
//
// Thread safety: any thread may call post(), until finish() or the destructor begins.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace streamfs::frontend {

class WorkerPool {
 public:
  // Starts the first thread at once, and others as they are needed, up to `threads_max`. All run on
  // processor `cpu` if it is given and the process's cpuset has it. Throws std::system_error if the
  // first thread cannot be started.
  WorkerPool(std::string name, unsigned threads_max, std::optional<unsigned> cpu = std::nullopt);
  ~WorkerPool();  // calls finish()
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Queues a task, which runs on any thread of the pool. Tasks begin in the order of post(). A
  // thread that takes a task first starts another one if none is idle; if that fails, tasks wait
  // for the threads that there are. post() itself starts none: the thread would inherit the
  // processors and the seccomp filter of its caller.
  void post(std::function<void()> task);
  // Returns once all posted tasks have run and the threads have ended. May be called again.
  // Requires: one thread at a time; no post() follows.
  void finish();

 private:
  void work();
  std::function<void()> take(size_t ran);
  void add_thread() SFS_REQUIRES(mutex_);
  const std::string name_;
  const unsigned threads_max_;
  const std::optional<unsigned> cpu_;
  Mutex mutex_;  // leaf
  CondVar wake_;
  std::deque<std::function<void()>> tasks_ SFS_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ SFS_GUARDED_BY(mutex_);
  size_t busy_ SFS_GUARDED_BY(mutex_) = 0;  // threads that run a task
  bool stopping_ SFS_GUARDED_BY(mutex_) = false;
};

}  // namespace streamfs::frontend
