// A memfd of fixed size: made, sealed against shrinking, growing and unsealing, mapped for good.
// Thread safety: immutable after construction. Crash: dies with the process.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/types.h"

namespace streamfs::placement {

class SharedMapping {
 public:
  static Result<SharedMapping> make(const char* name, uint64_t bytes);
  ~SharedMapping();
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&&) = delete;
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  int fd() const { return fd_; }
  uint64_t size() const { return size_; }
  std::byte* data() const { return data_; }

 private:
  SharedMapping(int fd, std::byte* data, uint64_t size) : fd_(fd), data_(data), size_(size) {}
  int fd_;
  std::byte* data_;
  uint64_t size_;
};

}  // namespace streamfs::placement
