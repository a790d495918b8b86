// Flushed counts lines that were flushed and that no fence has made durable. Region::flush()
// returns one, and Region::fence() or the commit of a transaction takes it, so the compiler refuses
// a caller that drops a flush without a fence. The destructor asserts that the lines were taken.
// Thread safety: none. A fence orders only the flushes of its own thread.
// After a crash: each line of a Flushed is durable or not.
#pragma once

#include <cstdint>
#include <utility>

#include "base/assert.h"

namespace streamfs::pmem {

class [[nodiscard]] Flushed {
 public:
  Flushed() = default;
  Flushed(Flushed&& other) noexcept : lines_(other.take()) {}
  Flushed& operator=(Flushed&&) = delete;  // it would lose lines
  Flushed(const Flushed&) = delete;
  Flushed& operator=(const Flushed&) = delete;
  ~Flushed() { SFS_ASSERT(lines_ == 0); }

  Flushed& operator+=(Flushed other) {
    lines_ += other.take();
    return *this;
  }
  bool none() const { return lines_ == 0; }
  uint64_t lines() const { return lines_; }
  // Gives the lines up, because nothing depends on them or a fence elsewhere covers them. Returns
  // their number.
  uint64_t leave() { return take(); }

 private:
  friend class Region;
  explicit Flushed(uint64_t lines) : lines_(lines) {}
  uint64_t take() { return std::exchange(lines_, 0); }

  uint64_t lines_ = 0;
};

}  // namespace streamfs::pmem
