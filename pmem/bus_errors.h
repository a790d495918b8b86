// Loads and stores that the medium itself fails: memory with an uncorrectable error, a file that
// was cut short, a disk that cannot be read. The processor or the kernel says so with SIGBUS, in
// the middle of an instruction; without this, the process dies.
//
// What is lost is replaced by a page of ones, at one stroke, and the instruction goes on. Ones and
// not zeroes, because a zero means "free" or "not known" almost everywhere in META, while no
// object's checksum fits ones, and what has none says "in use": an object there is EIO, and nothing
// is given away. Stores to the page are kept until the process ends, and lost() says that they are
// not on the medium: whoever promises durability asks first.
//
// Thread safety: any thread may fail at any moment, also two in one page; the handler takes no
// lock, allocates nothing and calls only system calls. Making and ending watches is serialised. The
// handler that was there before is called for what is not ours (or does what the system would: end
// the process), and is back when the last watch has ended. Crash: nothing of it is on media.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace streamfs::pmem {

class BusErrorWatch {
 public:
  // Watches these addresses, which are mapped until the watch ends. ENOMEM: too many watches.
  static Result<BusErrorWatch> over(std::byte* base, uint64_t bytes);
  BusErrorWatch(BusErrorWatch&& other) noexcept;
  BusErrorWatch& operator=(BusErrorWatch&&) = delete;
  ~BusErrorWatch();

  uint64_t lost() const;  // pages, counted again when threads met in one

 private:
  explicit BusErrorWatch(int slot) : slot_(slot) {}
  int slot_;  // < 0: moved from
};

}  // namespace streamfs::pmem
