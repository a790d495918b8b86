// What an open device is and can do, for people and programs.
// Thread safety: that of the device; list_nvme() on one thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "fuse-fs/blockdev/device.h"

namespace streamfs::blockdev {

// Every device: kind, path, identity, sizes, how it places (or why not) and how requests go to it,
// an NVMe namespace by which controllers and in which state.
// An NVMe device also: its limits and granularities, Streams or FDP as it tells them, and what its
// medium was written. Unknown figures are null.
nlohmann::json describe(Device& device);

// The NVMe subsystems of this machine, their controllers and namespaces, and what keeps a namespace
// from being DATA: by libnvme (nvme/topology.h), so without what this process may not open.
Result<nlohmann::json> list_nvme();

// Writes the last block again, as it is, once through every pStream: after it a device can say
// whether it heeds placements. Errors: the device's.
Result<void> probe_placement(Device& device);

}  // namespace streamfs::blockdev
