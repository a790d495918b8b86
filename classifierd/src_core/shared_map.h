// A file descriptor mapped shared for as long as the object lives; the descriptor stays the
// caller's. Throws std::runtime_error with a sentence when it cannot (the pybind11 boundary turns
// that into RuntimeError). Thread safety: none needed after construction.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>

namespace streamfs::classifier {

class SharedMap {
 public:
  enum class Access { kRead, kReadWrite };
  // Refuses anything smaller than `size_min` bytes.
  SharedMap(int fd, Access access, size_t size_min);
  SharedMap(const SharedMap&) = delete;
  SharedMap& operator=(const SharedMap&) = delete;
  ~SharedMap() { munmap(data_, size_); }

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  // Returns whether the file is sealed against shrinking. If it is not, the other side could turn a
  // read into SIGBUS; the caller decides whether to go on.
  bool sealed() const { return sealed_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool sealed_ = false;
};

}  // namespace streamfs::classifier
