#include "fuse-fs/nvme/discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/query.h"
#include "fuse-fs/nvme/structures.h"

namespace streamfs::nvme {
namespace {

Result<void> check_format(const std::string& path, const NamespaceIdentity& space) {
  constexpr const char* kAnother = "choose another LBA format (nvme format; it erases everything)";
  const uint64_t lba = space.lba_bytes();
  if (space.protection() != 0)
    return Error{EINVAL, fmt::format("{} is formatted with protection information (type {}): {}",
                                     path, space.protection(), kAnother)};
  if (space.metadata_bytes() != 0)
    return Error{EINVAL, fmt::format("{} is formatted with {} + {} bytes a block, data and "
                                     "metadata: {}",
                                     path, lba, space.metadata_bytes(), kAnother)};
  if (lba < 512 || lba > kBlockSize)
    return Error{EINVAL, fmt::format("{} has blocks of {} bytes; 512 to {} can be used: {}", path,
                                     lba, kBlockSize, kAnother)};
  if (space.nsze < kBlockSize / lba)
    return Error{ENXIO, path + " has no blocks: no such namespace, or one that is not attached"};
  return {};
}

// False, and why, where FDP is not to be had; Streams may still be.
bool discover_fdp(Controller& controller, Discovery& found) {
  if (!found.controller.has_fdp()) return false;
  const uint16_t group = found.space.endgid;
  const std::string& path = controller.path();
  if (group == 0) {
    found.why = path + " could do FDP, but its namespace is in no endurance group";
    return false;
  }
  const auto in_use = fdp_feature(controller, group);
  if (!in_use.ok()) {
    found.why = in_use.error().message();
    return false;
  }
  if (!*in_use) {
    found.why = fmt::format(
        "{} could do FDP, but it is off in endurance group {} (it can be turned on with nvme "
        "set-feature -f 0x1d while the group has no namespaces)",
        path, group);
    return false;
  }
  const auto all = fdp_configurations(controller, group);
  if (all.ok() && **in_use < all->size()) found.fdp = (*all)[**in_use];
  auto handles = ruh_statuses(controller);
  if (!handles.ok()) {
    found.why = handles.error().message();
    return false;
  }
  found.handles = std::move(*handles);
  if (found.handles.size() > kMostPStreams) found.handles.resize(kMostPStreams);
  if (found.handles.size() < 2) {
    found.why = path + " was created with one placement handle only";
    return false;
  }
  found.mechanism = Mechanism::kFdp;
  return true;
}

void discover_streams(Controller& controller, Discovery& found) {
  if (!found.controller.has_directives()) return;
  const auto directives = directive_parameters(controller);
  if (!directives.ok()) {
    found.why = directives.error().message();
    return;
  }
  found.directives = *directives;
  if (!found.directives->supports(directive::kStreams)) return;
  if (const auto parameters = streams_parameters(controller); parameters.ok())
    found.streams = *parameters;  // some answer only while Streams are enabled
  found.mechanism = Mechanism::kStreams;
}

}  // namespace

const char* name_of(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::kStreams:
      return "Streams";
    case Mechanism::kFdp:
      return "FDP";
    case Mechanism::kNone:
      break;
  }
  return "none";
}

Result<Discovery> discover(Controller& controller) {
  Discovery found;
  SFS_ASSIGN(found.controller, controller_identity(controller));
  SFS_ASSIGN(found.space, namespace_identity(controller));
  SFS_TRY(check_format(controller.path(), found.space));
  const auto limits = command_set_limits(controller);
  found.trim = trim_limits(found.space, limits.ok() ? *limits : CommandSetLimits{});
  if (!discover_fdp(controller, found)) discover_streams(controller, found);
  return found;
}

namespace {

// Returns the number of streams that the namespace may use, at most `wanted`. Requires: its Streams
// are enabled.
Result<uint16_t> allocate_up_to(Controller& controller, uint16_t wanted) {
  SFS_ASSIGN(const StreamsParameters parameters, streams_parameters(controller));
  if (parameters.nsa > 0) return std::min(parameters.nsa, wanted);
  const uint16_t most = std::min(parameters.nssa, wanted);
  if (most == 0)
    return Error{ENOSPC, fmt::format("{}: all of its {} streams are in use elsewhere",
                                     controller.path(), parameters.msl)};
  SFS_ASSIGN(const uint32_t allocated,
             controller.admin(allocate_streams(controller.nsid(), most), {}));
  if (allocated == 0)
    return Error{ENOSPC, controller.path() + " allocated no stream though it has some"};
  return static_cast<uint16_t>(std::min<uint32_t>(allocated, wanted));
}

}  // namespace

Result<uint16_t> take_streams(Controller& controller, uint16_t wanted) {
  const uint32_t nsid = controller.nsid();
  SFS_TRY(controller.admin(enable_directive(nsid, directive::kStreams, true), {}));
  auto held = allocate_up_to(controller, wanted);
  if (!held.ok()) (void)controller.admin(enable_directive(nsid, directive::kStreams, false), {});
  return held;
}

void give_streams_back(Controller& controller) {
  const uint32_t nsid = controller.nsid();
  (void)controller.admin(directive_send(nsid, directive::kStreams, directive::kReleaseResources, 0),
                         {});
  (void)controller.admin(enable_directive(nsid, directive::kStreams, false), {});
}

}  // namespace streamfs::nvme
