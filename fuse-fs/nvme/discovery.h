// Discovers the placement mechanism of a namespace, and refuses a namespace that cannot be used.
// Thread safety: that of the controller.
// After a crash of this process: Streams stay enabled and allocated; take_streams() uses them
// again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/structures.h"
#include "fuse-fs/nvme/trim.h"

namespace streamfs::nvme {

enum class Mechanism : uint8_t { kNone, kStreams, kFdp };
const char* name_of(Mechanism mechanism);

inline constexpr uint16_t kMostPStreams = 128;

struct Discovery {
  ControllerIdentity controller;
  NamespaceIdentity space;
  TrimLimits trim;
  Mechanism mechanism = Mechanism::kNone;
  std::string why;  // the reason if there is no placement although the device could have it
  std::optional<DirectiveParameters> directives;
  std::optional<StreamsParameters> streams;  // if supported; some devices tell only while enabled
  std::optional<FdpConfiguration> fdp;       // the configuration in use
  std::vector<RuhStatus> handles;            // by placement identifier; at most kMostPStreams
};

// Asks the controller and changes nothing.
// Errors: EINVAL for a format that cannot be used (metadata, separate or in the block, as in blocks
// of 520 bytes; protection information; blocks of less than 512 or more than 4096 bytes); ENXIO for
// a namespace without blocks; the controller's.
Result<Discovery> discover(Controller& controller);

// Enables Streams and allocates up to `wanted` of them, or uses those already allocated. Returns
// their number, at least one. On an error, Streams are disabled again.
// Errors: ENOSPC if none is free; the controller's.
Result<uint16_t> take_streams(Controller& controller, uint16_t wanted);
// Releases and disables Streams. Errors are ignored.
void give_streams_back(Controller& controller);

}  // namespace streamfs::nvme
