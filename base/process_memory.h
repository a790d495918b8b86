// What this process has in memory.
// Thread safety: pure but for the reading of /proc. Crash: memory only.
#pragma once

#include <cstdint>

namespace streamfs {

struct ProcessMemory {
  uint64_t anonymous_bytes = 0;  // its own: heap and stacks
  uint64_t mapped_bytes = 0;     // of files and devices it maps, its program among them
};
// Zeroes where /proc does not tell.
ProcessMemory process_memory();

}  // namespace streamfs
