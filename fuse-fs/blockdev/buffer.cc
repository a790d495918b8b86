#include "fuse-fs/blockdev/buffer.h"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "base/types.h"

namespace streamfs::blockdev {
namespace {

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

}  // namespace

Bytes scratch(size_t bytes) {
  thread_local std::unique_ptr<std::byte, Free> memory;
  thread_local size_t size = 0;
  if (size < bytes) {
    const size_t wanted = round_up(bytes, size_t{64} * 1024);
    std::unique_ptr<std::byte, Free> fresh(
        static_cast<std::byte*>(std::aligned_alloc(kBlockSize, wanted)));
    if (fresh == nullptr) throw std::bad_alloc();
    memory = std::move(fresh);
    size = wanted;
  }
  return {memory.get(), bytes};
}

}  // namespace streamfs::blockdev
