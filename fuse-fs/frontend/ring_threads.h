// The threads that libfuse starts for FUSE over io_uring, one for each queue.
// Thread safety: any thread.
#pragma once

#include <cstdint>

namespace streamfs::frontend {

inline constexpr const char* kRingThreads = "fuse-ring-";  // libfuse's names begin so

// Returns whether the calling thread is one.
bool is_ring_thread();

// Returns how many major page faults the ring threads have had: pages of a META file, or of the
// program, that had to be read from a disk. 0 over /dev/fuse.
uint64_t ring_thread_faults();

}  // namespace streamfs::frontend
