// Maps a memfd of fixed size, which is sealed against shrinking, growing and further seals.
// Thread safety: the mapping is immutable; its users synchronise access to the bytes. After a
// crash: the memory is lost once no process holds it.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/types.h"

namespace streamfs::placement {

class SharedMapping {
 public:
  // Errors: those of memfd_create(2), ftruncate(2), fcntl(2) and mmap(2).
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
