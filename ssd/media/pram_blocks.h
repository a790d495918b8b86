// Blocks of a filesystem's metadata in persistent memory (Lee, Samsung, "FSMS"). With selective
// programming only the words of a block that changed are programmed; without, all of them.
// Thread safety: none. Crash: a block being written may be a mixture of old and new words: the
// filesystem's log mends it, as it mends a torn sector.
#pragma once

#include <array>
#include <cstdint>

#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::ssd {

class PramBlocks {
 public:
  // Words of other sizes are counted as well: what a part programs at once differs.
  static constexpr std::array<uint32_t, 3> kWordBytes = {2, 4, 8};
  static constexpr uint32_t kSectorBytes = 512;

  struct Counts {
    uint64_t blocks = 0;
    uint64_t words = 0;                 // of them
    uint64_t programmed = 0;            // of those
    uint64_t sectors = 0;               // of 512 bytes in which anything changed
    std::array<uint64_t, 3> changed{};  // in words of kWordBytes
  };

  // Whole blocks of whole sectors; `region` outlives this.
  PramBlocks(pmem::Region& region, uint32_t block_bytes, bool selective)
      : region_(region), block_bytes_(block_bytes), selective_(selective) {}

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
