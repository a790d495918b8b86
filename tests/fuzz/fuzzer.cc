// One libFuzzer program; TARGET is its function in targets.h.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  streamfs::fuzz::TARGET(streamfs::fuzz::parse({data, size}));
  return 0;
}
