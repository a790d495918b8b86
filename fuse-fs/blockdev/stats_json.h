// Converts between DeviceStats and the emulated SSD's SsdStats, which ssd/stats.h prints.
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "fuse-fs/blockdev/device.h"
#include "ssd/stats.h"

namespace streamfs::blockdev {

DeviceStats device_stats(const ssd::SsdStats& ssd);

// Returns the `device` object of every --json output; unknown figures are null.
nlohmann::json to_json(const DeviceStats& stats);

}  // namespace streamfs::blockdev
