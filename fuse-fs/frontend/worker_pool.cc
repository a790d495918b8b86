#include "fuse-fs/frontend/worker_pool.h"

#include <pthread.h>
#include <sched.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace streamfs::frontend {

namespace {

// Without effect where the process may not use the processor (offline, or outside its cpuset).
void stay_on(unsigned cpu) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  pthread_setaffinity_np(pthread_self(), sizeof only, &only);
}

}  // namespace

WorkerPool::WorkerPool(std::string name, unsigned threads_max, std::optional<unsigned> cpu)
    : name_(std::move(name)), threads_max_(threads_max), cpu_(cpu) {
  const MutexLock lock(mutex_);
  add_thread();
}

WorkerPool::~WorkerPool() {
  finish();
}

void WorkerPool::finish() {
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

// Waits for a task and returns it; returns an empty function once the pool stops. `ran`: the number
// of tasks, 0 or 1, that the calling thread has run since its last call.
std::function<void()> WorkerPool::take(size_t ran) {
  const MutexLock lock(mutex_);
  busy_ -= ran;
  while (tasks_.empty() && !stopping_) wake_.wait(mutex_);
  if (tasks_.empty()) return {};
  std::function<void()> task = std::move(tasks_.front());
  tasks_.pop_front();
  ++busy_;
  const bool none_idle = threads_.size() <= busy_ + tasks_.size();
  if (none_idle && threads_.size() < threads_max_ && !stopping_) add_thread();
  return task;
}

void WorkerPool::work() {
  pthread_setname_np(pthread_self(), name_.c_str());
  if (cpu_) stay_on(*cpu_);
  size_t ran = 0;
  while (const std::function<void()> task = take(ran)) {
    task();
    ran = 1;
  }
}

}  // namespace streamfs::frontend
