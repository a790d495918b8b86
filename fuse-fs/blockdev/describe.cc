#include "fuse-fs/blockdev/describe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/nvme_device.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/discovery.h"
#include "fuse-fs/nvme/linux.h"
#include "fuse-fs/nvme/query.h"
#include "fuse-fs/nvme/structures.h"
#include "fuse-fs/nvme/topology.h"

namespace streamfs::blockdev {
namespace {

using nlohmann::json;

json placement_of(Device& device) {
  json identifiers = json::array();
  for (uint16_t s = 0; s < device.info().pstream_count; ++s)
    identifiers.push_back(device.placement(PStreamId{s}).dspec);
  json honoured = nullptr;
  if (auto* nvme = dynamic_cast<NvmeDevice*>(&device); nvme != nullptr) {
    const auto asked = nvme->honoured();
    if (asked.ok() && asked->has_value()) honoured = **asked;
  }
  const std::string& why = device.info().why;
  return {{"mechanism", device.info().mechanism},
          {"why", why.empty() ? json(nullptr) : json(why)},
          {"identifiers", identifiers},
          {"honoured", honoured}};
}

json path_json(const nvme::Path& path) {
  return {{"controller", path.controller},
          {"transport", path.transport},
          {"address", path.address},
          {"state", path.state}};
}

json paths_json(const nvme::SeenNamespace& space) {
  json paths = json::array();
  for (const nvme::Path& each : space.paths) {
    paths.push_back(path_json(each));
    paths.back()["access"] = each.access.empty() ? json(nullptr) : json(each.access);
  }
  return paths;
}

json topology_of(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(path, failed);
  const std::string generic = nvme::block_name_of(real);
  const auto all = nvme::topology();
  if (!all.ok()) return nullptr;
  const auto found = nvme::find(*all, generic.empty() ? real.filename().string() : generic);
  if (!found) return nullptr;
  return {{"subsystem", found->space->is_multipath ? json(found->subsystem->name) : json(nullptr)},
          {"nqn", found->subsystem->nqn},
          {"paths", paths_json(*found->space)}};
}

json limits_of(const NvmeDevice& device) {
  const uint64_t mdts = device.found().controller.max_transfer_bytes();
  const nvme::TrimLimits& trim = device.found().trim;
  const bool limited = mdts != std::numeric_limits<uint64_t>::max();
  return {{"transfer_bytes", device.max_transfer_bytes()},
          {"controller_transfer_bytes", limited ? json(mdts) : json(nullptr)},
          {"trim_ranges", device.found().controller.can_deallocate() ? trim.ranges : 0},
          {"trim_range_bytes", trim.range_lbas * device.found().space.lba_bytes()}};
}

json granularities_of(const nvme::NamespaceIdentity& space) {
  json all = {{"block_bytes", space.lba_bytes()}};
  const auto put = [&](const char* name, uint16_t lbas) {
    all[name] =
        space.has_granularities() ? json((uint64_t{lbas} + 1) * space.lba_bytes()) : json(nullptr);
  };
  put("write_bytes", space.npwg);
  put("write_alignment_bytes", space.npwa);
  put("trim_bytes", space.npdg);
  put("trim_alignment_bytes", space.npda);
  put("optimal_write_bytes", space.nows);
  return all;
}

json streams_of(NvmeDevice& device) {
  const nvme::Discovery& found = device.found();
  if (!found.streams) return nullptr;
  const auto now = nvme::streams_parameters(device.controller());
  const nvme::StreamsParameters& s = now.ok() ? *now : *found.streams;
  const uint64_t unit = s.sws * found.space.lba_bytes();
  return {{"in_all", s.msl}, {"free", s.nssa},      {"allocated", s.nsa},
          {"open", s.nso},   {"write_bytes", unit}, {"granularity_bytes", unit * s.sgs}};
}

json fdp_of(NvmeDevice& device) {
  const nvme::Discovery& found = device.found();
  if (!found.fdp) return nullptr;
  const nvme::FdpConfiguration& fdp = *found.fdp;
  const auto now = nvme::ruh_statuses(device.controller());
  json handles = json::array();
  for (const nvme::RuhStatus& each : now.ok() ? *now : found.handles) {
    const bool typed = each.handle < fdp.types.size();
    const char* type =
        !typed ? "unknown"
               : (fdp.types[each.handle] == 2 ? "persistently isolated" : "initially isolated");
    handles.push_back({{"placement", each.placement},
                       {"handle", each.handle},
                       {"type", type},
                       {"writable_bytes", each.writable_lbas * found.space.lba_bytes()}});
  }
  return {{"endurance_group", found.space.endgid},
          {"reclaim_unit_bytes", fdp.reclaim_unit_bytes},
          {"reclaim_groups", fdp.reclaim_groups},
          {"max_placements", fdp.max_placements},
          {"handles", handles}};
}

json medium_of(NvmeDevice& device) {
  const nvme::Discovery& found = device.found();
  const nvme::Written written =
      nvme::written(device.controller(), found.controller, found.space.endgid);
  const bool known = written.source != nvme::WafSource::kNone;
  const std::optional<double> waf = written.waf();
  return {{"source", nvme::name_of(written.source)},
          {"host_bytes", known ? json(written.host_bytes) : json(nullptr)},
          {"media_bytes", known ? json(written.media_bytes) : json(nullptr)},
          {"waf", waf ? json(*waf) : json(nullptr)}};
}

}  // namespace

json describe(Device& device) {
  const DeviceInfo& info = device.info();
  json all = {{"kind", info.kind},
              {"path", info.path},
              {"identity", info.identity},
              {"capacity_bytes", info.capacity_blocks * kBlockSize},
              {"pstreams", info.pstream_count},
              {"erase_unit_bytes", info.erase_unit_blocks * kBlockSize},
              {"flush_is_free", info.flush_is_free},
              {"transport", info.transport},
              {"topology", topology_of(info.path)},
              {"placement", placement_of(device)}};
  auto* nvme = dynamic_cast<NvmeDevice*>(&device);
  if (nvme == nullptr) return all;
  const nvme::Discovery& found = nvme->found();
  all["model"] = nvme::text_of(found.controller.model);
  all["firmware"] = nvme::text_of(found.controller.firmware);
  all["namespace"] = nvme->controller().nsid();
  all["serial"] = nvme::text_of(found.controller.serial);
  all["limits"] = limits_of(*nvme);
  all["granularity"] = granularities_of(found.space);
  all["streams"] = streams_of(*nvme);
  all["fdp"] = fdp_of(*nvme);
  all["medium"] = medium_of(*nvme);
  return all;
}

Result<void> probe_placement(Device& device) {
  const BlockNo last{device.info().capacity_blocks - 1};
  std::vector<std::byte> block(kBlockSize);
  IoBatch batch(device);
  batch.read(last, block);
  SFS_TRY(batch.wait());
  for (uint16_t s = 1; s < device.info().pstream_count; ++s) {
    batch.write(last, block, {device.placement(PStreamId{s}), {}});
    SFS_TRY(batch.wait());
  }
  return {};
}

namespace {

// Returns why a namespace cannot be DATA, as far as that is visible without opening it.
std::string obstacle(const nvme::SeenNamespace& space, const std::vector<std::string>& partitions) {
  if (space.metadata_bytes != 0)
    return fmt::format("formatted with {} + {} bytes a block, data and metadata", space.lba_bytes,
                       space.metadata_bytes);
  if (!partitions.empty())
    return fmt::format("partitioned ({}): a partition's block device can be used",
                       fmt::join(partitions, ", "));
  const std::string block = "/dev/" + space.block;
  const int fd = ::open(block.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd < 0 && errno == EBUSY ? "in use" : "";
}

json space_json(const nvme::SeenNamespace& space) {
  const std::string why = obstacle(space, nvme::partitions_of("/sys", space.block));
  return {{"generic", "/dev/" + space.generic},
          {"block", "/dev/" + space.block},
          {"namespace", space.nsid},
          {"capacity_bytes", space.lbas * space.lba_bytes},
          {"block_bytes", space.lba_bytes},
          {"metadata_bytes", space.metadata_bytes},
          {"obstacle", why.empty() ? json(nullptr) : json(why)},
          {"paths", paths_json(space)}};
}

json known_or_null(std::optional<bool> value) {
  return value ? json(*value) : json(nullptr);
}

}  // namespace

Result<json> list_nvme() {
  SFS_ASSIGN(const std::vector<nvme::Subsystem> all, nvme::topology());
  json listed = json::array();
  for (const nvme::Subsystem& each : all) {
    json controllers = json::array(), spaces = json::array();
    for (const nvme::Path& one : each.controllers) controllers.push_back(path_json(one));
    for (const nvme::SeenNamespace& one : each.namespaces) spaces.push_back(space_json(one));
    listed.push_back({{"subsystem", each.name},
                      {"nqn", each.nqn},
                      {"model", each.model},
                      {"serial", each.serial},
                      {"firmware", each.firmware},
                      {"fdp", known_or_null(each.has_fdp)},
                      {"directives", known_or_null(each.has_directives)},
                      {"controllers", controllers},
                      {"namespaces", spaces}});
  }
  return listed;
}

}  // namespace streamfs::blockdev
