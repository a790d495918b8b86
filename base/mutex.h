// std::mutex and std::shared_mutex with clang's thread-safety annotations.
// Lock order is written beside each member that is a lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#if defined(__clang__)
#define SFS_TSA(x) __attribute__((x))
#else
#define SFS_TSA(x)
#endif
#define SFS_GUARDED_BY(x) SFS_TSA(guarded_by(x))
#define SFS_REQUIRES(...) SFS_TSA(requires_capability(__VA_ARGS__))
#define SFS_REQUIRES_SHARED(...) SFS_TSA(requires_shared_capability(__VA_ARGS__))
#define SFS_EXCLUDES(...) SFS_TSA(locks_excluded(__VA_ARGS__))
#define SFS_NO_TSA SFS_TSA(no_thread_safety_analysis)

namespace streamfs {

// Tells the core that it is in a spin loop.
inline void relax_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A mutex that spins briefly before it sleeps: most are held for less time than a wake-up takes.
class SFS_TSA(capability("mutex")) Mutex {
 public:
  void lock() SFS_TSA(acquire_capability()) {
    for (int look = 0; look < kLooks; ++look) {
      if (mutex_.try_lock()) return;
      relax_core();
    }
    mutex_.lock();
  }
  void unlock() SFS_TSA(release_capability()) { mutex_.unlock(); }
  bool try_lock() SFS_TSA(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  static constexpr int kLooks = 64;  // a few microseconds
  std::mutex mutex_;
};

class SFS_TSA(capability("mutex")) SharedMutex {
 public:
  void lock() SFS_TSA(acquire_capability()) { mutex_.lock(); }
  void unlock() SFS_TSA(release_capability()) { mutex_.unlock(); }
  bool try_lock() SFS_TSA(try_acquire_capability(true)) { return mutex_.try_lock(); }
  void lock_shared() SFS_TSA(acquire_shared_capability()) { mutex_.lock_shared(); }
  void unlock_shared() SFS_TSA(release_shared_capability()) { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class SFS_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SFS_TSA(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() SFS_TSA(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class SFS_TSA(scoped_lockable) WriteLock {
 public:
  explicit WriteLock(SharedMutex& mutex) SFS_TSA(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~WriteLock() SFS_TSA(release_capability()) { mutex_.unlock(); }
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class SFS_TSA(scoped_lockable) ReadLock {
 public:
  explicit ReadLock(SharedMutex& mutex) SFS_TSA(acquire_shared_capability(mutex)) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~ReadLock() SFS_TSA(release_generic_capability()) { mutex_.unlock_shared(); }
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// A condition variable for a Mutex. std::condition_variable_any locks an internal mutex in wait()
// and notify_one(), on which a woken thread can block. This class has none.
// Requires: the caller of wait() and wait_for() holds the mutex, and all waiters pass the same one.
// Both may return without a notification.
class CondVar {
 public:
  void wait(Mutex& mutex) SFS_REQUIRES(mutex) {
    Held held(mutex);
    condition_.wait(held.lock);
  }
  template <typename Rep, typename Period>
  void wait_for(Mutex& mutex, std::chrono::duration<Rep, Period> time) SFS_REQUIRES(mutex) {
    Held held(mutex);
    condition_.wait_for(held.lock, time);
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  // Presents a Mutex that is held as a std::unique_lock. The mutex stays held.
  struct Held {
    explicit Held(Mutex& mutex) : lock(mutex.mutex_, std::adopt_lock) {}
    ~Held() { lock.release(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    std::unique_lock<std::mutex> lock;
  };
  std::condition_variable condition_;
};

}  // namespace streamfs
