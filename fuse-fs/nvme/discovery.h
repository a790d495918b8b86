// What a namespace can do about placement, and whether we can use the namespace at all.
// Thread safety: that of the controller. A crash leaves Streams enabled and their resources
// allocated; take_streams() goes on with them.
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
  std::string why;  // a sentence where there is no placement though the device looks like it
  std::optional<DirectiveParameters> directives;
  std::optional<StreamsParameters> streams;  // where Streams are supported
  std::optional<FdpConfiguration> fdp;       // in use
  std::vector<RuhStatus> handles;            // one for each placement identifier, as at discovery
};

// Changes nothing. Errors: EINVAL for a format that we cannot use (metadata beside the data or in
// it, as of 520 bytes; protection information; blocks other than 512 to 4096 bytes), ENXIO for a
// namespace without blocks; the controller's.
Result<Discovery> discover(Controller& controller);

// Enables Streams, and allocates as many as there are up to `wanted`: how many we then have, at
// least one. Errors: ENOSPC if others have them all, the controller's.
Result<uint16_t> take_streams(Controller& controller, uint16_t wanted);
// Gives them back; best effort.
void give_streams_back(Controller& controller);

}  // namespace streamfs::nvme
