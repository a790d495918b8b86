#include "ssd/geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "ssd/ftl/hybrid_layout.h"

namespace streamfs::ssd {
namespace {

constexpr uint64_t kMaxUserPages = uint64_t{1} << 31;  // 8 TiB: a page number fits 32 bits
constexpr uint32_t kDefaultPagesPerBlock = 256;
constexpr uint32_t kMinPagesPerBlock = 16;
constexpr uint32_t kMaxPlainPagesPerBlock = 65536;
constexpr uint32_t kMaxPagesPerBlock = 1 << 22;  // 16 GiB
constexpr uint32_t kPlainDies = 16;
constexpr uint32_t kPlainChannels = 4;
constexpr uint32_t kMaxDies = 1024;
constexpr uint16_t kMaxPlanes = 16;
constexpr double kMaxSpare = 10;
constexpr uint32_t kAlways = 1'000'000'000;
constexpr uint32_t kMaxLogBlockPages = UINT16_MAX;

Error impossible(std::string why) {
  return {EINVAL, "impossible geometry: " + std::move(why)};
}

// Small devices get small blocks, so that a handful of open blocks is not a tenth of the device.
uint32_t default_pages_per_block(uint64_t user_pages) {
  const uint64_t wanted = std::bit_floor(user_pages / 256 + 1);
  if (wanted >= kDefaultPagesPerBlock) return kDefaultPagesPerBlock;
  return std::max(static_cast<uint32_t>(wanted), kMinPagesPerBlock);
}

Result<void> check_shape(const Geometry& geometry) {
  const NandShape& nand = geometry.nand;
  if (nand.channels == 0 || nand.chips == 0 || nand.dies == 0 || nand.planes == 0 ||
      nand.wordlines == 0)
    return impossible("NAND without channels, chips, dies, planes or wordlines");
  if (uint64_t{nand.channels} * nand.chips * nand.dies > kMaxDies || nand.planes > kMaxPlanes)
    return impossible(fmt::format("{} × {} × {} dies of {} planes, at most {} dies of {}",
                                  nand.channels, nand.chips, nand.dies, nand.planes, kMaxDies,
                                  kMaxPlanes));
  if (nand.cell < Cell::kSlc || nand.cell > Cell::kTlc)
    return impossible(fmt::format("{} bits a cell: 1 (SLC), 2 (MLC) or 3 (TLC)",
                                  static_cast<uint32_t>(nand.cell)));
  const uint64_t pages = nand.block_pages();
  if (pages < kMinPagesPerBlock || pages > kMaxPagesPerBlock)
    return impossible(fmt::format("{} pages in a superblock: must be from {} to {}", pages,
                                  kMinPagesPerBlock, kMaxPagesPerBlock));
  if (pages != geometry.pages_per_block || nand.wordline_pages() != geometry.wordline_pages)
    return impossible(fmt::format("{} pages per block in wordlines of {}; the NAND has {} of {}",
                                  geometry.pages_per_block, geometry.wordline_pages, pages,
                                  nand.wordline_pages()));
  return {};
}

Result<void> check_map_unit(const Geometry& geometry) {
  const uint32_t unit = geometry.map_unit_pages;
  if (!std::has_single_bit(unit) || unit > kMaxMapUnitPages)
    return impossible(fmt::format("a map unit of {} KiB: must be 4, 8, 16, 32 or 64", unit * 4));
  if (geometry.wordline_pages % unit != 0)
    return impossible(
        fmt::format("a map unit of {} KiB does not divide the {} KiB programmed at "
                    "once",
                    unit * 4, geometry.wordline_pages * 4));
  if (geometry.user_pages % unit != 0)
    return impossible(
        fmt::format("{} user pages are not whole map units of {}", geometry.user_pages, unit));
  return {};
}

// Lee (Samsung), and Kim et al. (2002): host writes and copies go one page after another to a block
// each, or to log blocks.
Result<void> check_nand_ftl(const Geometry& geometry) {
  if (geometry.streams != 1 || geometry.gc_mode != GcMode::kOwnFrontier ||
      geometry.victim != VictimKind::kGreedy || !geometry.plp)
    return impossible(
        fmt::format("the FTL {} has one stream, no choice of --gc and --victim, and power-loss "
                    "protection",
                    name_of(geometry.ftl)));
  if (geometry.map_unit_pages != 1)
    return impossible(fmt::format("the FTL {} maps pages of 4 KiB", name_of(geometry.ftl)));
  if (geometry.failures.any() || geometry.bad_blocks != 0)
    return impossible(fmt::format("the flash of the FTL {} does not fail", name_of(geometry.ftl)));
  if (geometry.ftl == FtlKind::kHybrid && geometry.low_water >= kHybridPool)
    return impossible(fmt::format("{} free blocks for collections: the FTL hybrid keeps at most {}",
                                  geometry.low_water, kHybridPool - 1));
  if (geometry.ftl == FtlKind::kLogBlock && geometry.pages_per_block >= kMaxLogBlockPages)
    return impossible(fmt::format("log blocks of {} pages: must be below {}",
                                  geometry.pages_per_block, kMaxLogBlockPages));
  return {};
}

// Vishwakarma (2019): four streams, and garbage collection that ignores them.
Result<void> check_emmc(const Geometry& geometry) {
  if (geometry.streams != kEmmcStreams || geometry.gc_mode != GcMode::kShared || geometry.plp)
    return impossible(
        "an eMMC has 4 streams beside the default one, one active block for copies and a volatile "
        "buffer");
  if (geometry.map_unit_pages != 1) return impossible("an eMMC maps pages of 4 KiB");
  if (geometry.failures.any() || geometry.bad_blocks != 0)
    return impossible("this eMMC's flash does not fail");
  return {};
}

Result<void> check_vstream(const Geometry& geometry) {
  if (!geometry.plp) return impossible("a vStream device is power-loss protected");
  if (geometry.gc_mode == GcMode::kSameStream)
    return impossible("a vStream device copies into own or shared blocks");
  if (geometry.map_unit_pages != 1) return impossible("a vStream device maps pages of 4 KiB");
  return {};
}

Result<void> check_ftl(const Geometry& geometry) {
  switch (geometry.ftl) {
    case FtlKind::kEmmc:
      return check_emmc(geometry);
    case FtlKind::kVStream:
      return check_vstream(geometry);
    case FtlKind::kHybrid:
    case FtlKind::kLogBlock:
      return check_nand_ftl(geometry);
    case FtlKind::kPageMap:
      break;
  }
  return {};
}

}  // namespace

std::string_view name_of(GcMode mode) {
  switch (mode) {
    case GcMode::kSameStream:
      return "same";
    case GcMode::kOwnFrontier:
      return "own";
    case GcMode::kShared:
      break;
  }
  return "shared";
}

Result<GcMode> gc_mode_of(std::string_view name) {
  for (const GcMode mode : {GcMode::kSameStream, GcMode::kOwnFrontier, GcMode::kShared})
    if (name == name_of(mode)) return mode;
  return Error{EINVAL, fmt::format("no GC mode {}; there are same, own, shared", name)};
}

std::string_view name_of(VictimKind victim) {
  return victim == VictimKind::kCostBenefit ? "cost-benefit" : "greedy";
}

Result<VictimKind> victim_of(std::string_view name) {
  for (const VictimKind victim : {VictimKind::kGreedy, VictimKind::kCostBenefit})
    if (name == name_of(victim)) return victim;
  return Error{EINVAL, fmt::format("no victim policy {}; there are greedy, cost-benefit", name)};
}

std::string_view name_of(FtlKind ftl) {
  switch (ftl) {
    case FtlKind::kEmmc:
      return "emmc";
    case FtlKind::kVStream:
      return "vstream";
    case FtlKind::kHybrid:
      return "hybrid";
    case FtlKind::kLogBlock:
      return "log-block";
    case FtlKind::kPageMap:
      break;
  }
  return "page-map";
}

Result<FtlKind> ftl_of(std::string_view name) {
  std::string known;
  for (const FtlKind ftl : kAllFtls) {
    if (name == name_of(ftl)) return ftl;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name_of(ftl));
  }
  return Error{EINVAL, fmt::format("no FTL {}; there are {}", name, known)};
}

Result<NandShape> plain_shape(uint32_t pages_per_block, Cell cell) {
  NandShape shape;
  shape.cell = cell;
  const uint32_t wordline = shape.wordline_pages();
  if (pages_per_block < kMinPagesPerBlock || pages_per_block > kMaxPlainPagesPerBlock ||
      pages_per_block % wordline != 0)
    return impossible(fmt::format("{} pages per block: must be a multiple of {} from {} to {}",
                                  pages_per_block, wordline, kMinPagesPerBlock,
                                  kMaxPlainPagesPerBlock));
  const uint32_t stripes = pages_per_block / wordline;
  const uint32_t dies = std::min(kPlainDies, stripes & (~stripes + 1));
  shape.channels = static_cast<uint16_t>(std::min(dies, kPlainChannels));
  shape.dies = static_cast<uint16_t>(dies / shape.channels);
  shape.wordlines = stripes / dies;
  return shape;
}

Geometry Geometry::in_map_units() const {
  Geometry units = *this;
  units.user_pages /= map_unit_pages;
  units.pages_per_block /= map_unit_pages;
  units.wordline_pages /= map_unit_pages;
  return units;
}

Result<void> check_geometry(const Geometry& geometry) {
  if (geometry.user_pages == 0) return impossible("no user pages");
  if (geometry.streams == 0) return impossible("zero streams");
  if (geometry.streams > kMaxStreams)
    return impossible(fmt::format("{} streams, at most {}", geometry.streams, kMaxStreams));
  SFS_TRY(check_shape(geometry));
  SFS_TRY(check_map_unit(geometry));
  SFS_TRY(check_ftl(geometry));
  if (geometry.physical_pages() >= kNoPage) return impossible("more than 16 TiB of flash");
  if (geometry.low_water < 1) return impossible("no free block kept for garbage collection");
  if (geometry.failures.program_per_billion > kAlways ||
      geometry.failures.erase_per_billion > kAlways)
    return impossible("a failure rate above 1");
  // With every open block empty and the free blocks kept, some closed block must hold a dead page.
  const uint64_t needed = geometry.needed_blocks();
  if (geometry.blocks < needed + geometry.bad_blocks)
    return impossible(fmt::format(
        "{} blocks of {} pages, {} of them bad; the data, {} open blocks and the reserve need {}: "
        "more spare, fewer streams or smaller blocks",
        geometry.blocks, geometry.pages_per_block, geometry.bad_blocks, geometry.frontiers(),
        needed));
  return {};
}

Result<Geometry> plan_geometry(const GeometryRequest& request) {
  if (!(request.spare > 0) || request.spare > kMaxSpare)
    return impossible(
        fmt::format("spare of {}: must be above 0 and at most {}", request.spare, kMaxSpare));
  const uint64_t unit_pages = request.map_unit_bytes / kPageBytes;
  if (unit_pages == 0 || unit_pages > kMaxMapUnitPages || request.map_unit_bytes % kPageBytes != 0)
    return impossible(fmt::format("a map unit of {} bytes: must be 4, 8, 16, 32 or 64 KiB",
                                  request.map_unit_bytes));
  const uint64_t user_pages = round_down(request.user_bytes / kPageBytes, unit_pages);
  if (user_pages == 0) return impossible("a device of less than one page");
  if (user_pages > kMaxUserPages) return impossible("more than 8 TiB");
  if (request.streams == 0 || request.streams > kMaxStreams)
    return impossible(fmt::format("{} streams: 1 to {}", request.streams, kMaxStreams));
  if (request.nand && request.pages_per_block != 0)
    return impossible("both a NAND shape and pages per block");
  Geometry geometry;
  geometry.user_pages = static_cast<uint32_t>(user_pages);
  if (request.nand) {
    geometry.nand = *request.nand;
  } else {
    SFS_ASSIGN(geometry.nand,
               plain_shape(request.pages_per_block != 0 ? request.pages_per_block
                                                        : default_pages_per_block(user_pages)));
  }
  geometry.pages_per_block =
      static_cast<uint32_t>(std::min<uint64_t>(geometry.nand.block_pages(), kNoPage));
  geometry.wordline_pages = geometry.nand.wordline_pages();
  geometry.map_unit_pages = static_cast<uint32_t>(unit_pages);
  geometry.streams = static_cast<uint16_t>(request.streams);
  geometry.plp = request.plp;
  geometry.gc_mode = request.gc_mode;
  geometry.victim = request.victim;
  geometry.bad_blocks = request.bad_blocks;
  geometry.ftl = request.ftl;
  geometry.failures = request.failures;
  const double wanted = std::ceil(static_cast<double>(user_pages) * (1 + request.spare));
  if (wanted >= static_cast<double>(kNoPage)) return impossible("more than 16 TiB of flash");
  if (geometry.pages_per_block == 0) return check_shape(geometry).error();
  geometry.blocks = static_cast<uint32_t>(
      div_round_up(static_cast<uint64_t>(wanted), geometry.pages_per_block) + kReserveBlocks);
  if (request.blocks != 0) geometry.blocks = request.blocks;
  geometry.low_water = request.low_water;
  SFS_TRY(check_geometry(geometry));
  return geometry;
}

}  // namespace streamfs::ssd
