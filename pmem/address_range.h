// Reserves addresses behind a mapping, so that it can grow in place and pointers into it stay
// valid. The addresses cost page tables only once something is mapped there.
// Thread safety: none; an owned value. After a crash: nothing is on media.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace streamfs::pmem {

class AddressRange {
 public:
  // Reserves 16 times `size` bytes, 1 GiB at least, or `size` alone if the system refuses.
  // Errors: ENOMEM.
  static Result<AddressRange> reserve(uint64_t size);
  AddressRange(AddressRange&& other) noexcept;
  AddressRange& operator=(AddressRange&&) = delete;
  ~AddressRange();

  // Maps [offset, offset + bytes) of a file at the same place of the range. Requires: the bytes lie
  // in the range, and nothing is mapped behind them.
  // Errors: those of mmap(2). The range then ends at `offset` for good, because a failed mmap may
  // have freed the addresses, and another thread's mapping may be there. The caller therefore first
  // maps the file with the same `flags` elsewhere, to see that they are accepted.
  Result<void> map(uint64_t offset, uint64_t bytes, int protection, int flags, int fd);

  std::byte* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }

 private:
  AddressRange(std::byte* base, uint64_t bytes) : base_(base), bytes_(bytes) {}
  std::byte* base_;
  uint64_t bytes_;
};

}  // namespace streamfs::pmem
