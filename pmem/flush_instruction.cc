#include "pmem/flush_instruction.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace streamfs::pmem {

#if defined(__x86_64__)
namespace {

__attribute__((target("clwb"))) void clwb(const void* line) {
  _mm_clwb(const_cast<void*>(line));
}
__attribute__((target("clflushopt"))) void clflushopt(const void* line) {
  _mm_clflushopt(const_cast<void*>(line));
}
void clflush(const void* line) {
  _mm_clflush(line);
}

}  // namespace

WriteBackLine choose_write_back() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
  if ((ebx & (1U << 24U)) != 0) return clwb;
  if ((ebx & (1U << 23U)) != 0) return clflushopt;
  return clflush;
}

const char* write_back_name(WriteBackLine instruction) {
  if (instruction == clwb) return "clwb";
  return instruction == clflushopt ? "clflushopt" : "clflush";
}

void store_fence() {
  _mm_sfence();
}

#elif defined(__aarch64__)
namespace {
void dc_cvap(const void* line) {
  asm volatile("sys #3, c7, c12, #1, %0" ::"r"(line) : "memory");
}
}  // namespace

WriteBackLine choose_write_back() {
  return dc_cvap;
}
const char* write_back_name(WriteBackLine) {
  return "dc cvap";
}
void store_fence() {
  asm volatile("dsb sy" ::: "memory");
}
#else
#error "streamfs knows how to flush cache lines on x86-64 and arm64 only"
#endif

}  // namespace streamfs::pmem
