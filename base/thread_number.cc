#include "base/thread_number.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/mutex.h"

namespace streamfs {
namespace {

class Pool {
 public:
  size_t take() {
    const MutexLock lock(mutex_);
    const auto free = std::ranges::find(taken_, false);
    const auto number = static_cast<size_t>(free - taken_.begin());
    if (free == taken_.end()) taken_.push_back(false);
    taken_[number] = true;
    return number;
  }
  void give_back(size_t number) {
    const MutexLock lock(mutex_);
    taken_[number] = false;
  }

 private:
  Mutex mutex_;  // leaf
  std::vector<bool> taken_ SFS_GUARDED_BY(mutex_);
};

Pool& pool() {
  static Pool& there = *new Pool;  // threads may end after static objects
  return there;
}

class Number {
 public:
  Number() : value_(pool().take()) {}
  ~Number() { pool().give_back(value_); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  size_t value() const { return value_; }

 private:
  size_t value_;
};

}  // namespace

size_t take_thread_number() {
  thread_local const Number mine;
  return mine.value();
}

}  // namespace streamfs
