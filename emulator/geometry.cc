#include "emulator/geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/types.h"

namespace streamfs::emulator {
namespace {

constexpr uint64_t kMaxUserPages = uint64_t{1} << 31;  // 8 TiB: a page number fits 32 bits
constexpr uint32_t kDefaultPagesPerBlock = 256;
constexpr uint32_t kMinPagesPerBlock = 16;
constexpr uint32_t kMaxPagesPerBlock = 65536;
constexpr double kMaxSpare = 10;

Error impossible(std::string why) {
  return {EINVAL, "impossible geometry: " + std::move(why)};
}

// Small devices get small blocks, so that a handful of open blocks is not a tenth of the device.
uint32_t default_pages_per_block(uint64_t user_pages) {
  const uint64_t wanted = std::bit_floor(user_pages / 256 + 1);
  if (wanted >= kDefaultPagesPerBlock) return kDefaultPagesPerBlock;
  return std::max(static_cast<uint32_t>(wanted), kMinPagesPerBlock);
}

}  // namespace

Result<void> check_geometry(const Geometry& geometry) {
  if (geometry.user_pages == 0) return impossible("no user pages");
  if (geometry.streams == 0) return impossible("zero streams");
  if (geometry.streams > kMaxStreams)
    return impossible(fmt::format("{} streams, at most {}", geometry.streams, kMaxStreams));
  const uint32_t per_block = geometry.pages_per_block;
  if (per_block < kMinPagesPerBlock || per_block > kMaxPagesPerBlock ||
      per_block % kWordlinePages != 0)
    return impossible(fmt::format("{} pages per block: must be a multiple of {} from {} to {}",
                                  per_block, kWordlinePages, kMinPagesPerBlock, kMaxPagesPerBlock));
  if (geometry.physical_pages() >= kNoPage) return impossible("more than 16 TiB of flash");
  if (geometry.low_water < 1) return impossible("no free block kept for garbage collection");
  // With every open block empty and the free blocks kept, some closed block must hold a dead page.
  const uint64_t needed =
      div_round_up(geometry.user_pages, per_block) + geometry.low_water + geometry.frontiers() + 1;
  if (geometry.blocks < needed)
    return impossible(
        fmt::format("{} blocks of {} pages; the data, {} open blocks and the reserve "
                    "need {}: more spare, fewer streams or smaller blocks",
                    geometry.blocks, per_block, geometry.frontiers(), needed));
  return {};
}

Result<Geometry> plan_geometry(const GeometryRequest& request) {
  if (!(request.spare > 0) || request.spare > kMaxSpare)
    return impossible(
        fmt::format("spare of {}: must be above 0 and at most {}", request.spare, kMaxSpare));
  const uint64_t user_pages = request.user_bytes / kPageBytes;
  if (user_pages == 0) return impossible("a device of less than one page");
  if (user_pages > kMaxUserPages) return impossible("more than 8 TiB");
  if (request.streams == 0 || request.streams > kMaxStreams)
    return impossible(fmt::format("{} streams: 1 to {}", request.streams, kMaxStreams));
  Geometry geometry;
  geometry.user_pages = static_cast<uint32_t>(user_pages);
  geometry.pages_per_block =
      request.pages_per_block != 0 ? request.pages_per_block : default_pages_per_block(user_pages);
  geometry.streams = static_cast<uint16_t>(request.streams);
  geometry.plp = request.plp;
  geometry.gc_mode = request.gc_mode;
  const double wanted = std::ceil(static_cast<double>(user_pages) * (1 + request.spare));
  if (wanted >= static_cast<double>(kNoPage)) return impossible("more than 16 TiB of flash");
  geometry.blocks = static_cast<uint32_t>(
      div_round_up(static_cast<uint64_t>(wanted), geometry.pages_per_block) + kReserveBlocks);
  SFS_TRY(check_geometry(geometry));
  return geometry;
}

}  // namespace streamfs::emulator
