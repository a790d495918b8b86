// A mapping beside a range, or in an opening of it, is never mapped over or unmapped.
#include "pmem/address_range.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "base/types.h"
#include "pmem/region.h"

namespace {
std::atomic<int> refused_in_place = 0;
}

// The linker puts these around every mmap of this program.
extern "C" void* real_mmap(void* at, size_t bytes, int protection, int flags, int fd,
                           off_t offset) __asm__("__real_mmap");
extern "C" void* counting_mmap(void* at, size_t bytes, int protection, int flags, int fd,
                               off_t offset) __asm__("__wrap_mmap");

void* counting_mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  void* got = real_mmap(at, bytes, protection, flags, fd, offset);
  if (got == MAP_FAILED && (flags & MAP_FIXED) != 0) ++refused_in_place;
  return got;
}

namespace streamfs::pmem {
namespace {

constexpr uint64_t kSize = 16 << 20;

// A refused MAP_FIXED may have unmapped its place, and a thread that starts then gets its stack
// there. Ordinary files do refuse MAP_SYNC.
TEST(AddressRange, ARegionIsNeverTriedOutInItsPlace) {
  std::string pattern = (std::filesystem::temp_directory_path() / "streamfs-range-XXXXXX").string();
  const int fd = mkstemp(pattern.data());
  ASSERT_GE(fd, 0);
  close(fd);
  refused_in_place = 0;
  for (const bool read_only : {false, true}) {
    OpenOptions options;
    options.size = kSize;
    options.read_only = read_only;
    const auto region = open_region(pattern, options);
    EXPECT_TRUE(region.ok()) << region.error().message();
  }
  EXPECT_EQ(refused_in_place, 0);
  std::filesystem::remove(pattern);
}

TEST(AddressRange, WhatWasLostByARefusalIsSomeoneElses) {
  auto range = AddressRange::reserve(kSize);
  ASSERT_TRUE(range.ok());
  std::byte* lost = range->base() + kSize;
  const auto refused = range->map(kSize, kBlockSize, PROT_READ, MAP_SHARED, -1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, EBADF);
  EXPECT_EQ(range->bytes(), kSize);
  ASSERT_EQ(munmap(lost, kBlockSize), 0);  // as a file that refuses late does
  constexpr int kNew = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  void* mine = mmap(lost, 2 * kBlockSize, PROT_READ | PROT_WRITE, kNew, -1, 0);
  ASSERT_EQ(mine, lost) << "what lay behind it is free too";
  static_cast<std::byte*>(mine)[kBlockSize] = std::byte{1};
  {
    const AddressRange ended = std::move(*range);
  }
  EXPECT_EQ(static_cast<std::byte*>(mine)[kBlockSize], std::byte{1});
  EXPECT_EQ(munmap(mine, 2 * kBlockSize), 0);
}

}  // namespace
}  // namespace streamfs::pmem
