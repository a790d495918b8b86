#include "fuse-fs/nvme/query.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/fields.h"
#include "fuse-fs/nvme/structures.h"

namespace streamfs::nvme {
namespace {

constexpr size_t kLogStepBytes = 4096;  // every controller transfers so many in one command
constexpr size_t kMostLogBytes = 1024 * 1024;
constexpr size_t kMostStreams = 65535;

template <typename T>
Result<T> ask(Controller& controller, const Command& command) {
  std::vector<std::byte> bytes(T::kBytes);
  SFS_TRY(controller.admin(command, bytes));
  return decode<T>(bytes);
}

// A page, or its beginning, in steps; a multiple of 4 bytes.
Result<std::vector<std::byte>> log_bytes(Controller& controller, LogPage log, uint32_t nsid,
                                         size_t size) {
  std::vector<std::byte> bytes(round_up(size, 4));
  for (size_t at = 0; at < bytes.size(); at += kLogStepBytes) {
    const Bytes part = Bytes(bytes).subspan(at, std::min(kLogStepBytes, bytes.size() - at));
    log.offset = at;
    SFS_TRY(controller.admin(get_log_page(log, nsid, part.size()), part));
  }
  return bytes;
}

template <typename T>
Result<T> log_of(Controller& controller, const LogPage& log, uint32_t nsid) {
  SFS_ASSIGN(const std::vector<std::byte> bytes, log_bytes(controller, log, nsid, T::kBytes));
  return decode<T>(bytes);
}

uint64_t times(uint64_t count, uint64_t unit) {
  return count > UINT64_MAX / unit ? UINT64_MAX : count * unit;
}

std::optional<Written> from_ocp(Controller& controller) {
  const auto physical = log_of<OcpSmartLog>(controller, {log_page::kOcpSmart}, kAllNamespaces);
  if (!physical.ok() || !physical->is_ocp()) return std::nullopt;
  const auto smart = log_of<SmartLog>(controller, {log_page::kSmart}, kAllNamespaces);
  if (!smart.ok()) return std::nullopt;
  return Written{WafSource::kOcpLog, times(smart->data_units_written.value, SmartLog::kUnitBytes),
                 physical->physical_written.value, SmartLog::kUnitBytes};
}

}  // namespace

Result<ControllerIdentity> controller_identity(Controller& controller) {
  return ask<ControllerIdentity>(controller, identify(kCnsController, 0));
}

Result<NamespaceIdentity> namespace_identity(Controller& controller) {
  return ask<NamespaceIdentity>(controller, identify(kCnsNamespace, controller.nsid()));
}

Result<CommandSetLimits> command_set_limits(Controller& controller) {
  return ask<CommandSetLimits>(controller, identify(kCnsCommandSetController, 0));
}

Result<DirectiveParameters> directive_parameters(Controller& controller) {
  return ask<DirectiveParameters>(
      controller, directive_receive(controller.nsid(), directive::kIdentify,
                                    directive::kReturnParameters, DirectiveParameters::kBytes));
}

Result<StreamsParameters> streams_parameters(Controller& controller) {
  return ask<StreamsParameters>(
      controller, directive_receive(controller.nsid(), directive::kStreams,
                                    directive::kReturnParameters, StreamsParameters::kBytes));
}

Result<std::vector<uint16_t>> open_streams(Controller& controller, uint64_t most_bytes) {
  const uint64_t all = round_up(2 + 2 * kMostStreams, 4);
  std::vector<std::byte> bytes(std::min(all, round_down(most_bytes, 4)));
  SFS_TRY(controller.admin(directive_receive(controller.nsid(), directive::kStreams,
                                             directive::kGetStatus, bytes.size()),
                           bytes));
  return decode_stream_status(bytes);
}

Result<std::optional<uint8_t>> fdp_feature(Controller& controller, uint16_t endurance_group) {
  SFS_ASSIGN(const uint32_t value,
             controller.admin(get_features(kFeatureFdp, endurance_group), {}));
  if ((value & 1) == 0) return std::optional<uint8_t>();
  return std::optional(static_cast<uint8_t>(value >> 8));
}

Result<std::vector<FdpConfiguration>> fdp_configurations(Controller& controller,
                                                         uint16_t endurance_group) {
  const LogPage page{log_page::kFdpConfigurations, endurance_group};
  constexpr size_t kSizeAt = 4;
  SFS_ASSIGN(const std::vector<std::byte> header, log_bytes(controller, page, 0, 16));
  const size_t size = std::min<size_t>(load<uint32_t>(header, kSizeAt), kMostLogBytes);
  SFS_ASSIGN(std::vector<std::byte> bytes, log_bytes(controller, page, 0, size));
  bytes.resize(size);
  return decode_fdp_configurations(bytes);
}

Result<FdpStatistics> fdp_statistics(Controller& controller, uint16_t endurance_group) {
  return log_of<FdpStatistics>(controller, {log_page::kFdpStatistics, endurance_group}, 0);
}

// The header first: a controller may refuse a buffer that is longer than its answer (Data SGL
// Length Invalid).
Result<std::vector<RuhStatus>> ruh_statuses(Controller& controller) {
  for (size_t room = 0;;) {
    std::vector<std::byte> bytes(kRuhStatusHeaderBytes + room * RuhStatus::kBytes);
    SFS_TRY(controller.io(ruh_status(controller.nsid(), bytes.size()), bytes));
    SFS_ASSIGN(RuhStatusList list, decode_ruh_status(bytes));
    if (list.count <= room) return std::move(list.known);
    room = list.count;
  }
}

Written written(Controller& controller, const ControllerIdentity& identity,
                uint16_t endurance_group) {
  if (identity.has_fdp() && endurance_group != 0)
    if (const auto fdp = fdp_statistics(controller, endurance_group); fdp.ok())
      return {WafSource::kFdpStatistics, fdp->host_written.value, fdp->media_written.value};
  if (const auto ocp = from_ocp(controller)) return *ocp;
  if ((identity.ctratt & ControllerIdentity::kCtrattEnduranceGroups) == 0 || endurance_group == 0)
    return {};
  const auto group =
      log_of<EnduranceGroupLog>(controller, {log_page::kEnduranceGroup, endurance_group}, 0);
  if (!group.ok()) return {};
  return {WafSource::kEnduranceGroupLog,
          times(group->data_units_written.value, EnduranceGroupLog::kUnitBytes),
          times(group->media_units_written.value, EnduranceGroupLog::kUnitBytes),
          EnduranceGroupLog::kUnitBytes};
}

std::optional<double> Written::waf() const {
  constexpr uint64_t kUnits = 100;  // so that what is missing of one is below a hundredth
  if (source == WafSource::kNone || host_bytes < times(unit_bytes, kUnits)) return std::nullopt;
  return static_cast<double>(media_bytes) / static_cast<double>(host_bytes);
}

Written Written::since(const Written& then) const {
  if (source != then.source) return {};
  return {source, host_bytes - std::min(host_bytes, then.host_bytes),
          media_bytes - std::min(media_bytes, then.media_bytes), unit_bytes};
}

const char* name_of(WafSource source) {
  switch (source) {
    case WafSource::kFdpStatistics:
      return "FDP statistics";
    case WafSource::kOcpLog:
      return "OCP log page C0h and SMART data units";
    case WafSource::kEnduranceGroupLog:
      return "endurance group log (10^9 bytes)";
    case WafSource::kNone:
      break;
  }
  return "none";
}

}  // namespace streamfs::nvme
