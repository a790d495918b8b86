// Memory for device I/O: aligned to blocks, as direct I/O wants it.
// Thread safety: a buffer is one thread's.
#pragma once

#include <array>
#include <cstdint>

#include "base/types.h"

namespace streamfs::blockdev {

inline bool block_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kBlockSize == 0;
}

// A thread's own buffer, kept from one request to the next: a fresh megabyte a request costs more
// in page faults than the copy into it. Valid until the thread's next call.
Bytes scratch(size_t bytes);

// One block of its own, for a caller whose thread is using the scratch already.
struct alignas(kBlockSize) BlockBuffer {
  std::array<std::byte, kBlockSize> bytes{};
};

}  // namespace streamfs::blockdev
