// Holds two versions of a value. Many threads read the current one without waiting; one thread at a
// time fills the other one and makes it current. A reader counts itself in and out on a cache line
// that few threads share, so the writer knows when a version is free ("left-right", Ramalhete and
// Correia, 2013).
// Thread safety: read(), any thread; replace(), one thread at a time.
// After a crash: memory only.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "base/thread_number.h"
#include "base/types.h"

namespace streamfs {

template <typename T>
class ReadMostly {
 public:
  // Gives access to the version that was current at read(), which does not change while the Reader
  // lives. Keep it for microseconds: replace() waits for it.
  class Reader {
   public:
    Reader(Reader&& other) noexcept
        : value_(std::exchange(other.value_, nullptr)),
          count_(std::exchange(other.count_, nullptr)) {}
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    Reader& operator=(Reader&&) = delete;
    ~Reader() {
      if (count_ != nullptr) count_->fetch_sub(1, std::memory_order_release);
    }
    explicit operator bool() const { return value_ != nullptr; }  // false until the first replace()
    const T& operator*() const { return *value_; }
    const T* operator->() const { return value_; }

   private:
    friend class ReadMostly;
    Reader() = default;
    Reader(const T* value, std::atomic<uint64_t>* count) : value_(value), count_(count) {}
    const T* value_ = nullptr;
    std::atomic<uint64_t>* count_ = nullptr;
  };

  Reader read() const {
    for (;;) {
      const uint32_t current = current_.load(std::memory_order_acquire);
      if (current == kNone) return Reader();
      auto& count = lines_[thread_number() % kLines].readers[current];
      // seq_cst puts this increment into one order with the writer's store of current_ and its
      // check of the counts. Either the writer sees this reader, or this reader sees that its
      // version is not current.
      count.fetch_add(1, std::memory_order_seq_cst);
      if (current_.load(std::memory_order_seq_cst) == current)
        return Reader(versions_[current].get(), &count);
      count.fetch_sub(1, std::memory_order_release);
    }
  }
  // Waits until no reader uses the version that is not current, calls fill(T&) with it and makes it
  // current if fill() returns true. The T holds the result of an earlier fill(), or is new.
  // Requires: the caller has no Reader.
  template <typename Fill>
  void replace(const Fill& fill) {
    const uint32_t current = current_.load(std::memory_order_relaxed);
    const uint32_t idle = current == 0 ? 1 : 0;
    while (in_use(idle)) std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (versions_[idle] == nullptr) versions_[idle] = std::make_unique<T>();
    if (fill(*versions_[idle])) current_.store(idle, std::memory_order_seq_cst);
  }

 private:
  static constexpr uint32_t kNone = 2;
  static constexpr size_t kLines = 16;  // with more threads, some share a line
  struct alignas(kLineSize) Line {
    std::array<std::atomic<uint64_t>, 2> readers{};
  };
  bool in_use(uint32_t version) const {
    for (const Line& line : lines_)
      if (line.readers[version].load(std::memory_order_seq_cst) != 0) return true;
    return false;
  }

  mutable std::array<Line, kLines> lines_{};
  std::array<std::unique_ptr<T>, 2> versions_;
  std::atomic<uint32_t> current_{kNone};
};

}  // namespace streamfs
