// Devices by name, and the same devices smaller.
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

// EINVAL for an unknown name; the error lists the known ones.
Result<GeometryRequest> find_preset(std::string_view name);

// Makes the device N times smaller for a scale of "1/N": capacity and superblocks shrink, their
// number, the spare, the dies and the timing stay, and with them the ratios that write
// amplification depends on. EINVAL if the wordlines of a block cannot be divided so.
Result<void> scale_down(GeometryRequest& request, std::string_view scale);

}  // namespace streamfs::ssd
