#include "ssd/presets.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "base/result.h"
#include "base/types.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {
namespace {

constexpr uint64_t kGb = 1'000'000'000;

GeometryRequest device(uint64_t user_bytes, uint32_t streams, const NandShape& nand, bool plp,
                       GcMode gc_mode) {
  GeometryRequest request;
  request.user_bytes = user_bytes;
  request.streams = streams;
  request.nand = nand;
  request.plp = plp;
  request.gc_mode = gc_mode;
  return request;
}

// Vishwakarma (2019): 64 GB in 1,365 blocks of 48 MiB; the source says neither spare nor cells.
GeometryRequest emmc_64g() {
  GeometryRequest request = emmc_request();
  request.ftl = FtlKind::kPageMap;
  request.user_bytes = 1365 * 48 * kMiB;
  request.nand = NandShape{1, 1, 1, 4, 256, Cell::kTlc};
  return request;
}

// Yong (2021): 270 GiB of flash for 256 GiB, of which 3 % are kept free.
GeometryRequest vstream_256g() {
  GeometryRequest request =
      device(256 * kGiB, 3, {4, 4, 2, 2, 256, Cell::kTlc}, true, GcMode::kOwnFrontier);
  request.blocks = 360;
  request.low_water = 10;  // collects below 10.8
  return request;
}

}  // namespace

GeometryRequest emmc_request() {
  GeometryRequest request;
  request.ftl = FtlKind::kEmmc;
  request.streams = kEmmcStreams;
  request.plp = false;
  request.gc_mode = GcMode::kShared;
  return request;
}

GeometryRequest nand_request(FtlKind ftl) {
  GeometryRequest request;
  request.ftl = ftl;
  request.streams = 1;
  return request;
}

std::span<const Preset> presets() {
  static const std::array<Preset, 5> all = {
      Preset{"embedded-slc", "4 GiB, one SLC die of 2 planes, 4 streams, volatile buffer",
             device(4 * kGiB, 4, {1, 1, 1, 2, 128, Cell::kSlc}, false, GcMode::kOwnFrontier)},
      Preset{"consumer-tlc", "512 GB, 8 TLC dies on 4 channels, one stream, volatile buffer",
             device(512 * kGb, 1, {4, 1, 2, 4, 256, Cell::kTlc}, false, GcMode::kOwnFrontier)},
      Preset{"enterprise-fdp",
             "1.92 TB, 64 TLC dies on 16 channels, 8 initially isolated reclaim-unit handles, "
             "power-loss protected",
             device(1920 * kGb, 8, {16, 1, 4, 4, 512, Cell::kTlc}, true, GcMode::kShared)},
      Preset{"emmc-64g",
             "64 GB, one TLC die, 4 streams beside the default one, copies of all together, "
             "volatile buffer",
             emmc_64g()},
      Preset{"vstream-256g",
             "256 GiB on 270 GiB, 32 TLC dies on 4 channels, 3 streams, power-loss protected",
             vstream_256g()}};
  return all;
}

Result<GeometryRequest> find_preset(std::string_view name) {
  std::string known;
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset.request;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", preset.name);
  }
  return Error{EINVAL,
               fmt::format("impossible geometry: no preset '{}'; there are {}", name, known)};
}

Result<void> scale_down(GeometryRequest& request, std::string_view scale) {
  const auto bad = [&](const std::string& why) {
    return Error{EINVAL, fmt::format("impossible geometry: scale '{}': {}", scale, why)};
  };
  uint32_t by = 0;
  const char* end = scale.data() + scale.size();
  if (!scale.starts_with("1/")) return bad("must be 1/N");
  const auto [stop, error] = std::from_chars(scale.data() + 2, end, by);
  if (error != std::errc() || stop != end || by == 0) return bad("must be 1/N");
  if (!request.nand) return bad("only a preset can be scaled");
  if (request.nand->wordlines % by != 0)
    return bad(
        fmt::format("{} does not divide the {} wordlines of a block", by, request.nand->wordlines));
  request.nand->wordlines /= by;
  request.user_bytes /= by;
  return {};
}

}  // namespace streamfs::ssd
