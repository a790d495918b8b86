// Describes devices as JSON, for people and programs.
// Thread safety: that of the device; list_nvme() on one thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "fuse-fs/blockdev/device.h"

namespace streamfs::blockdev {

// Describes an open device: kind, path, identity, sizes, its placement mechanism (or why it has
// none), its transport, and the controllers that lead to an NVMe namespace, with their states.
// An NVMe device also has limits, granularities, Streams or FDP parameters and the bytes written to
// its medium. Unknown figures are null.
nlohmann::json describe(Device& device);

// Lists the NVMe subsystems of this machine, their controllers and namespaces, and why a namespace
// cannot be DATA. Devices that this process may not open are missing (nvme/topology.h).
Result<nlohmann::json> list_nvme();

// Rewrites the last block with its own content through every pStream but the default one, so that
// NvmeDevice::honoured() can tell. Errors: the device's. Requires: nobody else writes that block.
Result<void> probe_placement(Device& device);

}  // namespace streamfs::blockdev
