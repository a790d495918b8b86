// Power-up: what the spare area says is on the flash.
//
// Programming goes in order through a block, so a block ends at the first wordline without any
// programmed page, and only its last wordline (with power-loss protection: its last map unit) can
// have been torn by a power cut. Torn spare entries show by their checksum. Torn data under a whole
// entry shows by the data's checksum, which is compared where the power may have gone: in the last
// wordline of blocks that are not full, in wordlines among the last that were programmed, and
// everywhere in kBlockDoubtful blocks.
// Thread safety: none; before the device serves anybody. Crash: changes the image only by marking
// blocks kBlockDoubtful; a second scan finds the same.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "ssd/ftl/page_map.h"
#include "ssd/geometry.h"
#include "ssd/image.h"

namespace streamfs::ssd {

struct SpareScan {
  std::vector<RecoveredBlock> blocks;
  std::vector<BlockIndex> half_erased;  // to be erased again before use
  std::vector<BlockIndex> unclean;      // their spare areas hold garbage, erase must remove it
  std::vector<Ppn> location;            // by logical page
  uint64_t next_sequence = 1;
  uint64_t damaged_pages = 0;  // spare entries that no power cut explains
};

// What a log of contexts says of the flash as it was: the rest need not be looked at.
struct ScanBase {
  struct Block {
    uint32_t committed = 0;  // pages that `location` knows of
    uint32_t erases = 0;     // when it did: another number now means that nothing is in it
  };
  std::vector<Block> blocks;
  std::vector<Ppn> location;  // of what was committed
  uint64_t sequence = 0;      // of anything programmed by then, at most
};

// In map units. Looks only into blocks that were not full at the time of `base`. What was erased
// since must not have been programmed since.
SpareScan scan_spare_since(Image& image, bool mark, const ScanBase& base, uint32_t& blocks_read);

// In map units. With `mark`, blocks with torn pages become kBlockDoubtful.
SpareScan scan_spare(Image& image, bool mark);

uint32_t checksum_of(const SpareEntry& entry);

// Is this the map unit that was programmed with the entry?
bool fits(const SpareEntry& entry, ConstBytes unit);

}  // namespace streamfs::ssd
