// The processor's way to write a cache line back, chosen once at run time.
// Thread safety: pure functions. x86-64: CLWB, CLFLUSHOPT or CLFLUSH, then SFENCE; arm64: DC CVAP
// (DC CVAC where it is missing), then DSB.
#pragma once

namespace streamfs::pmem {

using WriteBackLine = void (*)(const void* line);

WriteBackLine choose_write_back();
const char* write_back_name(WriteBackLine instruction);
void store_fence();

}  // namespace streamfs::pmem
