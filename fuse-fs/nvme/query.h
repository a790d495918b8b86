// Queries a controller and decodes its answers.
// Thread safety: that of the controller. Errors: the controller's; EIO for an answer that is
// corrupt.
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

// Errors: EINVAL from controllers older than NVMe 2.0.
Result<CommandSetLimits> command_set_limits(Controller& controller);

Result<DirectiveParameters> directive_parameters(Controller& controller);
Result<StreamsParameters> streams_parameters(Controller& controller);
// Returns the identifiers of open streams, as many as fit an answer of `most_bytes`.
Result<std::vector<uint16_t>> open_streams(Controller& controller, uint64_t most_bytes);

// Returns the index of the FDP configuration in use; nothing while FDP is disabled.
Result<std::optional<uint8_t>> fdp_feature(Controller& controller, uint16_t endurance_group);
Result<std::vector<FdpConfiguration>> fdp_configurations(Controller& controller,
                                                         uint16_t endurance_group);
Result<FdpStatistics> fdp_statistics(Controller& controller, uint16_t endurance_group);
Result<std::vector<RuhStatus>> ruh_statuses(Controller& controller);

// The bytes that hosts sent, and the bytes that were written to the medium, since the device was
// made. Some sources count in units of 512,000 or of 10^9 bytes; all count every namespace of the
// endurance group.
enum class WafSource : uint8_t { kNone, kFdpStatistics, kOcpLog, kEnduranceGroupLog };
struct Written {
  WafSource source = WafSource::kNone;
  uint64_t host_bytes = 0, media_bytes = 0;
  uint64_t unit_bytes = 1;                   // the coarser unit of the two
  std::optional<double> waf() const;         // nothing until a hundred units were sent
  Written since(const Written& then) const;  // the difference; kNone if the sources differ
};
// Reads the first source that answers, in the order of WafSource; kNone if none does.
Written written(Controller& controller, const ControllerIdentity& identity,
                uint16_t endurance_group);
const char* name_of(WafSource source);

}  // namespace streamfs::nvme
