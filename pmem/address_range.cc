#include "pmem/address_range.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"
#include "base/types.h"

namespace streamfs::pmem {
namespace {

constexpr uint64_t kTimes = 16;
constexpr uint64_t kAtLeast = uint64_t{1} << 30;
// Alignments of offset 0 of the file, for huge pages and for devdax devices with 1 GiB pages.
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kHugestPage = uint64_t{1} << 30;

// Reserves `bytes` of addresses at a multiple of `alignment`. nullptr: refused.
std::byte* reserve_aligned(uint64_t bytes, uint64_t alignment) {
  const uint64_t asked = bytes + alignment;
  void* got = mmap(nullptr, asked, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  auto* start = static_cast<std::byte*>(got);
  const auto address = reinterpret_cast<uintptr_t>(start);
  const uint64_t skipped = round_up(address, alignment) - address;
  if (skipped != 0) munmap(start, skipped);
  munmap(start + skipped + bytes, alignment - skipped);
  return start + skipped;
}

}  // namespace

Result<AddressRange> AddressRange::reserve(uint64_t size) {
  const uint64_t bytes = std::max(round_up(size, kHugePage) * kTimes, kAtLeast);
  const uint64_t alignment = size >= kHugestPage ? kHugestPage : kHugePage;
  if (std::byte* base = reserve_aligned(bytes, alignment)) return AddressRange(base, bytes);
  const uint64_t least = round_up(size, kHugePage);
  if (std::byte* base = reserve_aligned(least, alignment)) return AddressRange(base, least);
  return Error{ENOMEM, "addresses for META"};
}

Result<void> AddressRange::map(uint64_t offset, uint64_t bytes, int protection, int flags, int fd) {
  if (mmap(base_ + offset, bytes, protection, flags | MAP_FIXED, fd, static_cast<off_t>(offset)) !=
      MAP_FAILED) {
    return {};
  }
  const int code = errno;
  munmap(base_ + offset + bytes, bytes_ - offset - bytes);
  bytes_ = offset;
  return Error{code, "mapping META"};
}

AddressRange::AddressRange(AddressRange&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}

AddressRange::~AddressRange() {
  if (base_ != nullptr && bytes_ != 0) munmap(base_, bytes_);
}

}  // namespace streamfs::pmem
