// What the ring threads of this process waited for although they should not.
// Thread safety: any thread.
#pragma once

#include <cstdint>

namespace streamfs::frontend {

// Counts the page faults in which a ring thread waited for a disk: those of a META file that is not
// in memory. 0 over /dev/fuse.
uint64_t ring_thread_faults();

}  // namespace streamfs::frontend
