// DeviceStats and the emulator's SsdStats are the same figures; one place knows both, and one
// function (ssd/stats.h) prints them.
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "fuse-fs/blockdev/device.h"
#include "ssd/stats.h"

namespace streamfs::blockdev {

DeviceStats device_stats(const ssd::SsdStats& ssd);

// The `device` object of every --json output; what the device does not tell is null.
nlohmann::json to_json(const DeviceStats& stats);

}  // namespace streamfs::blockdev
