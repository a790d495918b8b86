// The resident memory of this process, from /proc/self/status.
// Thread safety: any thread.
#pragma once

#include <cstdint>

namespace streamfs {

struct ProcessMemory {
  uint64_t anonymous_bytes = 0;  // heap and stacks
  uint64_t mapped_bytes = 0;     // mapped files, devices and shared memory; includes the program
};
// Returns zeroes if /proc does not tell.
ProcessMemory process_memory();

}  // namespace streamfs
