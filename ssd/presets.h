// Devices by name, and their scaled-down versions.
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

struct Preset {
  std::string_view name;
  std::string_view what;
  GeometryRequest request;
};

std::span<const Preset> presets();

// Returns the request of an eMMC with streams (ftl/emmc/firmware.h) without a size.
GeometryRequest emmc_request();
// Returns the request of a device with the hybrid or the log-block FTL without a size.
GeometryRequest nand_request(FtlKind ftl);

// Errors: EINVAL for an unknown name; the message lists the known names.
Result<GeometryRequest> find_preset(std::string_view name);

// Makes the device N times smaller for a scale of "1/N". Capacity and superblocks shrink. The
// number of superblocks, the spare and the dies stay, and so do the ratios that write amplification
// depends on. Errors: EINVAL for another scale, a request without a NAND shape, or if N does not
// divide the number of wordlines of a block; the request is then unchanged.
Result<void> scale_down(GeometryRequest& request, std::string_view scale);

}  // namespace streamfs::ssd
