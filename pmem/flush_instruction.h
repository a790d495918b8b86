// The processor's instruction that writes a cache line back, and the fence that completes it.
// x86-64: the first of CLWB, CLFLUSHOPT and CLFLUSH that the processor has, then SFENCE. arm64: DC
// CVAP, then DSB.
// Thread safety: any thread.
#pragma once

namespace streamfs::pmem {

using WriteBackLine = void (*)(const void* line);

WriteBackLine choose_write_back();
const char* write_back_name(WriteBackLine instruction);
void store_fence();

}  // namespace streamfs::pmem
