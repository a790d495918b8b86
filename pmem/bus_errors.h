// Handles loads and stores that the medium fails: memory with an uncorrectable error, a truncated
// file, a disk that cannot be read. The processor or the kernel reports them with SIGBUS in the
// middle of an instruction; without a handler the process dies.
//
// The handler atomically replaces the lost page (of 4 KiB, or of a devdax mapping's size) with
// ones, and the instruction continues. Zero means "free" or "not known" almost everywhere in META.
// Ones fit no object's checksum, and a field without a checksum reads as "in use": access to an
// object there returns EIO, and nothing is allocated twice. Stores to the page stay in memory.
// lost() reports that they are not on the medium; a caller checks it before it promises durability.
//
// Thread safety: any thread may fault at any moment, also two in one page. The handler takes no
// lock, allocates nothing and calls only system calls. A mutex serialises the start and end of
// watches. The previous handler gets every SIGBUS outside the watched addresses (the default one
// ends the process), and those for which no page could be replaced. It is restored when the last
// watch ends. After a crash: the ones, and the stores to a lost page, are gone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace streamfs::pmem {

class BusErrorWatch {
 public:
  // Watches these addresses until the result is destroyed. Requires: they stay mapped until the
  // watch ends. Errors: ENOMEM for too many watches, those of sigaction(2).
  static Result<BusErrorWatch> over(std::byte* base, uint64_t bytes);
  BusErrorWatch(BusErrorWatch&& other) noexcept;
  BusErrorWatch& operator=(BusErrorWatch&&) = delete;
  ~BusErrorWatch();

  // Returns the number of lost pages; a page counts once for each thread that faulted on it at the
  // same time. Requires: not moved from.
  uint64_t lost() const;

 private:
  explicit BusErrorWatch(int slot) : slot_(slot) {}
  int slot_;  // < 0: moved from
};

}  // namespace streamfs::pmem
