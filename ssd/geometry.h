// The shape of an emulated SSD, and the checks that make an impossible one an error.
// Thread safety: values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/types.h"

namespace streamfs::ssd {

using Lpn = uint32_t;         // logical page: 4 KiB for the host, a map unit inside the FTL
using Ppn = uint32_t;         // physical page: block × pages_per_block + place in the block
using BlockIndex = uint32_t;  // erase block: a superblock over all dies and planes

inline constexpr uint32_t kNoPage = UINT32_MAX;
inline constexpr uint32_t kNoBlock = UINT32_MAX;
inline constexpr uint64_t kPageBytes = kBlockSize;
inline constexpr uint32_t kFlashPagePages = 4;  // a 16 KiB flash page holds 4 logical pages
inline constexpr uint16_t kMaxStreams = 128;
inline constexpr uint16_t kEmmcStreams = 5;     // the default one included
inline constexpr uint32_t kReserveBlocks = 12;  // beside the requested spare
inline constexpr size_t kPendingErases = 4;     // dead blocks that may wait for buffered pages
inline constexpr uint32_t kMaxMapUnitPages = 16;

// The open block to which garbage collection copies a page that a host write put on stream s. In
// FDP's words, a stream is a reclaim-unit handle, and victims are chosen over all of them (a shared
// pool).
enum class GcMode : uint8_t {
  kSameStream = 0,   // back to the open block of s: persistently isolated, host and copies mixed
  kOwnFrontier = 1,  // the open block of s for copies: persistently isolated
  kShared = 2,       // one open block for the copies of all streams: initially isolated
};

std::string_view name_of(GcMode mode);  // same, own, shared
// Errors: EINVAL for another name.
Result<GcMode> gc_mode_of(std::string_view name);

// The policy by which garbage collection chooses the block to collect (victim/).
enum class VictimKind : uint8_t {
  kGreedy = 0,
  kCostBenefit = 1,
};
inline constexpr uint8_t kVictimKinds = 2;
std::string_view name_of(VictimKind victim);  // greedy, cost-benefit
// Errors: EINVAL for another name.
Result<VictimKind> victim_of(std::string_view name);

// The FTL of an image. No other FTL can read it.
enum class FtlKind : uint8_t {
  kPageMap = 0,   // ftl/page_map.h
  kEmmc = 1,      // ftl/emmc/firmware.h
  kVStream = 2,   // ftl/vstream/firmware.h
  kHybrid = 3,    // ftl/hybrid_firmware.h
  kLogBlock = 4,  // ftl/log_block_firmware.h
};
inline constexpr std::array kAllFtls = {FtlKind::kPageMap, FtlKind::kEmmc, FtlKind::kVStream,
                                        FtlKind::kHybrid, FtlKind::kLogBlock};
std::string_view name_of(FtlKind ftl);  // page-map, emmc, vstream, hybrid, log-block
// Returns whether the FTL is one that runs on ftl/nand.h: page by page, in one stream.
inline bool runs_on_nand(FtlKind ftl) {
  return ftl == FtlKind::kHybrid || ftl == FtlKind::kLogBlock;
}
// Errors: EINVAL for another name.
Result<FtlKind> ftl_of(std::string_view name);

// Bits of a cell. A wordline holds that many flash pages a plane, programmed in one shot.
enum class Cell : uint8_t { kSlc = 1, kMlc = 2, kTlc = 3 };

struct NandShape {
  uint16_t channels = 1;
  uint16_t chips = 1;       // of a channel
  uint16_t dies = 1;        // of a chip
  uint16_t planes = 4;      // of a die
  uint32_t wordlines = 16;  // of an erase block
  Cell cell = Cell::kSlc;

  uint32_t die_count() const { return uint32_t{channels} * chips * dies; }
  // The unit programmed at once: one wordline in every plane of a die.
  uint32_t wordline_pages() const { return planes * uint32_t(cell) * kFlashPagePages; }
  // A superblock: one erase block in every plane of every die; wordlines go round the dies.
  uint64_t block_pages() const { return uint64_t{wordlines} * wordline_pages() * die_count(); }
};

// Injected failures, by a hash of the seed and the place: the same device fails the same way.
struct FailureRates {
  uint32_t program_per_billion = 0;  // of wordlines programmed
  uint32_t erase_per_billion = 0;    // of superblocks erased
  uint64_t seed = 1;
  bool any() const { return program_per_billion != 0 || erase_per_billion != 0; }
};

struct Geometry {
  uint32_t user_pages = 0;
  uint32_t pages_per_block = 256;
  uint32_t blocks = 0;     // physical, spare and reserve included
  uint16_t streams = 1;    // pStreams, the default included
  uint16_t low_water = 2;  // free blocks at or below which GC runs
  GcMode gc_mode = GcMode::kOwnFrontier;
  VictimKind victim = VictimKind::kGreedy;
  bool plp = true;               // power-loss protected: a flush is free and pads nothing
  uint32_t wordline_pages = 16;  // nand.wordline_pages()
  uint32_t map_unit_pages = 1;   // 4 KiB pages that the FTL maps together
  uint32_t bad_blocks = 0;       // from the factory
  FtlKind ftl = FtlKind::kPageMap;
  NandShape nand;
  FailureRates failures;

  uint32_t frontiers() const { return uint32_t{streams} * 2; }
  uint64_t physical_pages() const { return uint64_t{blocks} * pages_per_block; }
  // Returns the number of good blocks that the device needs to collect its garbage.
  uint64_t needed_blocks() const {
    return div_round_up(user_pages, pages_per_block) + low_water + frontiers() + 1;
  }
  // Returns the same device with map units as pages, as its FTL sees it; map_unit_pages is
  // unchanged.
  Geometry in_map_units() const;
};

struct GeometryRequest {
  uint64_t user_bytes = 0;
  double spare = 0.07;     // spare ÷ user
  uint32_t blocks = 0;     // of flash, reserve included; replaces `spare` unless 0
  uint16_t low_water = 2;  // free blocks at or below which garbage collection runs
  uint32_t streams = 8;
  uint32_t pages_per_block = 0;        // 0: the shape's, or chosen from the size
  std::optional<NandShape> nand = {};  // none: a plain one that gives pages_per_block
  uint64_t map_unit_bytes = kPageBytes;
  bool plp = true;
  GcMode gc_mode = GcMode::kOwnFrontier;
  VictimKind victim = VictimKind::kGreedy;
  uint32_t bad_blocks = 0;
  FtlKind ftl = FtlKind::kPageMap;
  FailureRates failures = {};
};

// Returns a shape for a block size: four-plane dies on up to four channels, as many dies (a power
// of two up to 16) as the block can stripe over. Errors: EINVAL for a block out of range or not of
// whole wordlines.
Result<NandShape> plain_shape(uint32_t pages_per_block, Cell cell = Cell::kSlc);

// Errors: EINVAL with the reason for a device that cannot exist or could not collect its garbage.
Result<Geometry> plan_geometry(const GeometryRequest& request);

// Makes the same checks for a geometry that was read from an image.
Result<void> check_geometry(const Geometry& geometry);

}  // namespace streamfs::ssd
