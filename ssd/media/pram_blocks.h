// Blocks of a filesystem's metadata in persistent memory (Lee, Samsung, "FSMS"). With selective
// programming only the changed words of a block count as programmed; without it all of them do.
//
// Thread safety: none. After a crash: a block in mid-write may mix old and new words; the
// filesystem's log repairs it like a torn sector.
#pragma once

#include <array>
#include <cstdint>

#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::ssd {

class PramBlocks {
 public:
  // Changed words are counted in each size, because parts differ in the unit that they program.
  static constexpr std::array<uint32_t, 3> kWordBytes = {2, 4, 8};
  static constexpr uint32_t kSectorBytes = 512;

  struct Counts {
    uint64_t blocks = 0;                // written
    uint64_t words = 0;                 // of 8 bytes, in these blocks
    uint64_t programmed = 0;            // of these words
    uint64_t sectors = 0;               // of 512 bytes with a change
    std::array<uint64_t, 3> changed{};  // changed words of each size of kWordBytes
  };

  // `block_bytes` is a multiple of kSectorBytes; `region` outlives this.
  PramBlocks(pmem::Region& region, uint32_t block_bytes, bool selective)
      : region_(region), block_bytes_(block_bytes), selective_(selective) {}

  // Stores, flushes and fences a whole block.
  void write(uint32_t block, ConstBytes now);
  const Counts& counts() const { return counts_; }

 private:
  void count(ConstBytes before, ConstBytes now);

  pmem::Region& region_;
  const uint32_t block_bytes_;
  const bool selective_;
  Counts counts_;
};

}  // namespace streamfs::ssd
