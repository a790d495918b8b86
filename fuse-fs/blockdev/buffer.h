// Memory for device I/O, aligned to blocks for direct I/O.
// Thread safety: a buffer belongs to one thread.
#pragma once

#include <array>
#include <cstdint>

#include "base/types.h"

namespace streamfs::blockdev {

inline bool block_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kBlockSize == 0;
}

// Returns a thread-local buffer that is reused by each request: a fresh megabyte per request would
// cost more in page faults than the copy into it. Its content is arbitrary. Valid until the
// thread's next call. Throws std::bad_alloc.
Bytes scratch(size_t bytes);

// A single block, for a caller whose thread is already using scratch().
struct alignas(kBlockSize) BlockBuffer {
  std::array<std::byte, kBlockSize> bytes{};
};

}  // namespace streamfs::blockdev
