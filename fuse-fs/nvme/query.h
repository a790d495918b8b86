// Questions to a controller and what it answers, as structures.
// Thread safety: that of the controller. Errors: the controller's; EIO for bytes that cannot be.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/structures.h"

namespace streamfs::nvme {

Result<ControllerIdentity> controller_identity(Controller& controller);
Result<NamespaceIdentity> namespace_identity(Controller& controller);

// EINVAL from controllers before NVMe 2.0.
Result<CommandSetLimits> command_set_limits(Controller& controller);

Result<DirectiveParameters> directive_parameters(Controller& controller);
Result<StreamsParameters> streams_parameters(Controller& controller);
// As many as one command of `most_bytes` tells.
Result<std::vector<uint16_t>> open_streams(Controller& controller, uint64_t most_bytes);

// The index of the FDP configuration in use; none while FDP is disabled.
Result<std::optional<uint8_t>> fdp_feature(Controller& controller, uint16_t endurance_group);
Result<std::vector<FdpConfiguration>> fdp_configurations(Controller& controller,
                                                         uint16_t endurance_group);
Result<FdpStatistics> fdp_statistics(Controller& controller, uint16_t endurance_group);
Result<std::vector<FdpEvent>> fdp_events(Controller& controller, uint16_t endurance_group,
                                         bool of_host);
Result<std::vector<RuhStatus>> ruh_statuses(Controller& controller);

// What the host sent and what the medium was written, since the device was made. Some count in
// units of 512,000 or of 10^9 bytes; all of them count every namespace of the endurance group.
enum class WafSource : uint8_t { kNone, kFdpStatistics, kOcpLog, kEnduranceGroupLog };
struct Written {
  WafSource source = WafSource::kNone;
  uint64_t host_bytes = 0, media_bytes = 0;
  uint64_t unit_bytes = 1;                   // of the coarser one
  std::optional<double> waf() const;         // none before a hundred units were written
  Written since(const Written& then) const;  // kNone if told by another source
};
// From the first source that the controller has; kNone if it has none, or does not let us ask.
Written written(Controller& controller, const ControllerIdentity& identity,
                uint16_t endurance_group);
const char* name_of(WafSource source);

}  // namespace streamfs::nvme
