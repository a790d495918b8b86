// The threads that libfuse starts for FUSE over io_uring, one for each queue.
// Thread safety: any thread.
#pragma once

#include <cstdint>

namespace streamfs::frontend {

inline constexpr const char* kRingThreads = "fuse-ring-";  // libfuse's names begin so

// Counts the page faults in which a ring thread waited for a disk: those of a META file that is not
// in memory. 0 over /dev/fuse.
uint64_t ring_thread_faults();

}  // namespace streamfs::frontend
