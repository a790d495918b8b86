// Power-up: derives the content of the flash from the spare area.
//
// A block is programmed in order. It therefore ends at its first erased wordline, and a power cut
// can have torn only its last wordline (with power-loss protection: its last map unit). A torn
// spare entry fails its checksum. Torn data under a whole entry fails the data's checksum. The scan
// checks data in the last wordline of blocks that are not full, in the wordlines that were
// programmed last, and everywhere in kBlockDoubtful blocks.
// Thread safety: none; runs before the device serves requests. After a crash: the scan only marks
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
  std::vector<BlockIndex> unclean;      // the next erase must clear garbage from their spare areas
  std::vector<Ppn> location;            // by logical page; kNoPage: not mapped
  uint64_t next_sequence = 1;
  uint64_t damaged_pages = 0;  // damaged spare entries that no power cut explains
};

// An earlier state of the flash, from a log of contexts. A scan from it does not read blocks that
// were full then or were erased since.
struct ScanBase {
  struct Block {
    uint32_t committed = 0;  // pages that `location` covers
    uint32_t erases = 0;     // at that time; if it differs from the block's, the block is empty
  };
  std::vector<Block> blocks;
  std::vector<Ppn> location;  // of the committed pages, by logical page
  uint64_t sequence = 0;      // the largest that was given to a page or trim by then
};

// Does scan_spare() from `base`: reads the spare areas of the other blocks, and sets blocks_read to
// their number. If a block that was erased since the base has pages, the base is an old one, for
// instance because the newest context is damaged; then the whole spare area is scanned.
SpareScan scan_spare_since(Image& image, bool mark, const ScanBase& base, uint32_t& blocks_read);

// Scans the whole spare area, in map units. With `mark`, blocks with torn pages become
// kBlockDoubtful.
SpareScan scan_spare(Image& image, bool mark);

uint32_t checksum_of(const SpareEntry& entry);

// Returns what an entry says of its page. `erases` is the erase count of its block. An entry that
// is neither whole nor empty is garbage.
enum class SpareKind : uint8_t { kErased, kProgrammed, kGarbage };
SpareKind kind_of(const SpareEntry& entry, uint32_t erases);

// Returns whether the map unit's data has the entry's checksum.
bool fits(const SpareEntry& entry, ConstBytes unit);

}  // namespace streamfs::ssd
