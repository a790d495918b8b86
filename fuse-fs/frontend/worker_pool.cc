#include "fuse-fs/frontend/worker_pool.h"

#include <pthread.h>

#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace streamfs::frontend {

WorkerPool::WorkerPool(std::string name, unsigned threads_max)
    : name_(std::move(name)), threads_max_(threads_max) {
  const MutexLock lock(mutex_);
  add_thread();
}

WorkerPool::~WorkerPool() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  wake_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void WorkerPool::post(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
    if (tasks_.size() > idle_ && threads_.size() < threads_max_) add_thread();
  }
  wake_.notify_one();
}

// Starts a further thread. If that fails, the task waits for the threads that there are.
void WorkerPool::add_thread() {
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;
  }
}

void WorkerPool::work() {
  pthread_setname_np(pthread_self(), name_.c_str());
  for (;;) {
    std::function<void()> task;
    {
      const MutexLock lock(mutex_);
      ++idle_;
      while (tasks_.empty() && !stopping_) wake_.wait(mutex_);
      --idle_;
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace streamfs::frontend
