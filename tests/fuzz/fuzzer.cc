// A libFuzzer program; TARGET is its function in targets.h.
#include <malloc.h>

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

// The next run takes the memory that a run frees: without this, malloc gives pages back to the
// kernel and gets them again a thousand times a second. The address sanitizer has its own
// allocator.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  constexpr int kKept = 256 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kKept);
  ::mallopt(M_TRIM_THRESHOLD, kKept);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  streamfs::fuzz::TARGET(streamfs::fuzz::parse({data, size}));
  return 0;
}
