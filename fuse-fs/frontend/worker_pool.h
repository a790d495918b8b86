// Threads for tasks that must not run on a thread that serves the transport.
//
// Thread safety: any thread may call post(), until the destructor begins. The destructor runs all
// posted tasks, then joins.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace streamfs::frontend {

class WorkerPool {
 public:
  // Starts the first thread at once, and others as they are needed, up to `threads_max`. Throws
  // std::system_error if the first one cannot be started.
  WorkerPool(std::string name, unsigned threads_max);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Queues a task, which runs on any thread of the pool. Tasks begin in the order of post(). Starts
  // a thread if no idle one is left for it; if that fails, the task waits for the threads that
  // there are.
  void post(std::function<void()> task);

 private:
  void work();
  void add_thread() SFS_REQUIRES(mutex_);
  const std::string name_;
  const unsigned threads_max_;
  Mutex mutex_;  // leaf
  CondVar wake_;
  std::deque<std::function<void()>> tasks_ SFS_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ SFS_GUARDED_BY(mutex_);
  size_t idle_ SFS_GUARDED_BY(mutex_) = 0;
  bool stopping_ SFS_GUARDED_BY(mutex_) = false;
};

}  // namespace streamfs::frontend
