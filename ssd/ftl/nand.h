// Flash as a small controller sees it: one page at a time, each with a spare area that the FTL
// itself writes and, at power-up, reads. The FTLs of the papers use it (log_block.h, hybrid.h); the
// page map uses a Media (page_map.h).
//
// Contract: pages of a block are programmed in order, each once per erase. After a power cut a page
// that was being programmed is whole, torn or still erased; a block that was being erased is as it
// was, erased, or torn in every page.
//
// Thread safety: none; the owner locks. Errors are errno values, 0 for none; the caller must not
// rely on any effect of a call that failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ssd/geometry.h"

namespace streamfs::ssd {

inline constexpr Lpn kUnknownPage = kNoPage - 1;  // no device has it

// 24 bytes of the 64 beside a page of 2 KiB.
struct Spare {
  Lpn page = kNoPage;  // the logical page; kNoPage: torn; kUnknownPage: damage that no cut explains
  Ppn replaced = kNoPage;  // the physical page that becomes dead (hybrid.h)
  uint64_t sequence = 0;   // counts programs (log_block.h)
  bool padding = true;     // without data
  bool in_place = false;   // this page and all before it lie at their own places (log_block.h)
};

class Nand {
 public:
  virtual ~Nand() = default;
  virtual uint32_t page_bytes() const = 0;

  // `data` has page_bytes() bytes, 0 for flash without data; null: zeroes. Errors, here and below:
  // EIO without power.
  virtual int program(Ppn at, const Spare& spare, const std::byte* data) = 0;
  // Does not check the data: damage is copied, and read() finds it. Requires: `from` is programmed.
  virtual int copy(Ppn from, Ppn to, const Spare& spare) = 0;
  virtual int erase(BlockIndex block) = 0;
  // Errors: EIO also for a torn, damaged or erased page.
  virtual int read(Ppn at, std::byte* data) = 0;
  virtual std::optional<Spare> spare(Ppn at) = 0;  // none for an erased page
};

}  // namespace streamfs::ssd
