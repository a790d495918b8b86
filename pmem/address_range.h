// Addresses kept free behind a mapping, so that it can become longer where it is: pointers into it
// stay good. They cost page tables only once something is mapped there.
// Thread safety: none; an owned value. Crash: nothing of it is on media.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace streamfs::pmem {

class AddressRange {
 public:
  // Room for what has `size` bytes now and may become several times that; where the system refuses
  // so much, for `size` alone. ENOMEM: not even that.
  static Result<AddressRange> reserve(uint64_t size);
  AddressRange(AddressRange&& other) noexcept;
  AddressRange& operator=(AddressRange&&) = delete;
  ~AddressRange();

  // Puts [offset, offset + bytes) of a file at the same place of the range. The file must be known
  // to accept `flags` (ask with a mapping elsewhere): a refusal here, an errno of mmap(2), may have
  // opened the place to any other thread's mapping, so the range ends at `offset` from then on.
  Result<void> map(uint64_t offset, uint64_t bytes, int protection, int flags, int fd);

  std::byte* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }

 private:
  AddressRange(std::byte* base, uint64_t bytes) : base_(base), bytes_(bytes) {}
  std::byte* base_;
  uint64_t bytes_;
};

}  // namespace streamfs::pmem
