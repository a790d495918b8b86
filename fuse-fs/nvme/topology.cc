#include "fuse-fs/nvme/topology.h"

#include <endian.h>
extern "C" {  // which libnvme.h says for its parts
#include <nvme/tree.h>
#include <nvme/types.h>
}
#include <syslog.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace streamfs::nvme {
namespace {

constexpr uint32_t kFdpAttribute = uint32_t{1} << 19;  // of CTRATT; Debian 12's has no name for it
constexpr uint16_t kDirectivesCommand = uint16_t{1} << 5;  // of OACS

std::string text_or_none(const char* text) {
  const std::string whole = text != nullptr ? text : "";
  return whole.substr(0, whole.find_last_not_of(" \n") + 1);
}

// Where there is no access state libnvme takes "optimized" for it; /sys is asked.
std::string access_of(nvme_path_t path) {
  const std::unique_ptr<char, decltype(&std::free)> state(nvme_get_path_attr(path, "ana_state"),
                                                          &std::free);
  return text_or_none(state.get());
}

Path path_through(nvme_ctrl_t controller) {
  return {text_or_none(nvme_ctrl_get_name(controller)),
          text_or_none(nvme_ctrl_get_transport(controller)),
          text_or_none(nvme_ctrl_get_address(controller)),
          text_or_none(nvme_ctrl_get_state(controller)),
          {}};
}

SeenNamespace described(nvme_ns_t space) {
  SeenNamespace seen;
  seen.block = text_or_none(nvme_ns_get_name(space));
  seen.generic = text_or_none(nvme_ns_get_generic_name(space));
  seen.nsid = static_cast<uint32_t>(nvme_ns_get_nsid(space));
  seen.lbas = nvme_ns_get_lba_count(space);
  seen.lba_bytes = static_cast<uint64_t>(nvme_ns_get_lba_size(space));
  seen.metadata_bytes = static_cast<uint64_t>(nvme_ns_get_meta_size(space));
  return seen;
}

// The path through nvme3 to a namespace "nvme0n1" that has several paths is "nvme0c3n1".
std::string namespace_of(const std::string& path_name) {
  const size_t at = path_name.find('c');
  return at == std::string::npos
             ? path_name
             : path_name.substr(0, at) + path_name.substr(path_name.find('n', at));
}

SeenNamespace& entry_of(Subsystem& into, nvme_ns_t space) {
  const auto known =
      std::ranges::find(into.namespaces, nvme_ns_get_name(space), &SeenNamespace::block);
  if (known != into.namespaces.end()) return *known;
  return into.namespaces.emplace_back(described(space));
}

void add_controller(Subsystem& into, nvme_ctrl_t controller) {
  into.model = text_or_none(nvme_ctrl_get_model(controller));
  into.serial = text_or_none(nvme_ctrl_get_serial(controller));
  into.firmware = text_or_none(nvme_ctrl_get_firmware(controller));
  into.controllers.push_back(path_through(controller));
  nvme_ns_t space = nullptr;
  nvme_ctrl_for_each_ns(controller, space) {
    entry_of(into, space).paths.push_back(path_through(controller));
  }
}

// A path's namespace is the subsystem's, so this comes when all of these are known.
void add_paths(Subsystem& into, nvme_ctrl_t controller) {
  nvme_path_t path = nullptr;
  nvme_ctrl_for_each_path(controller, path) {
    const std::string block = namespace_of(text_or_none(nvme_path_get_name(path)));
    const auto space = std::ranges::find(into.namespaces, block, &SeenNamespace::block);
    if (space == into.namespaces.end()) continue;
    space->is_multipath = true;
    space->paths.push_back(path_through(controller));
    space->paths.back().access = access_of(path);
  }
}

// Learns the subsystem's features from the first controller that answers.
void ask_controller(nvme_ctrl_t controller, Subsystem& into) {
  if (into.has_fdp) return;
  nvme_id_ctrl identity{};
  if (nvme_ctrl_identify(controller, &identity) != 0) return;
  into.has_fdp = (le32toh(identity.ctratt) & kFdpAttribute) != 0;
  into.has_directives = (le16toh(identity.oacs) & kDirectivesCommand) != 0;
}

Subsystem& entry_of(std::vector<Subsystem>& all, nvme_subsystem_t subsystem) {
  const std::string name = text_or_none(nvme_subsystem_get_name(subsystem));
  const auto known = std::ranges::find(all, name, &Subsystem::name);
  if (known != all.end()) return *known;
  Subsystem& made = all.emplace_back();
  made.name = name;
  made.nqn = text_or_none(nvme_subsystem_get_nqn(subsystem));
  return made;
}

// Where nothing tells a name of this host, libnvme 1.3 makes one up for each controller, and a
// subsystem of two comes once under each: its parts are put together by its name.
template <typename Visit>
void each_subsystem(nvme_root_t root, const Visit& visit) {
  nvme_host_t host = nullptr;
  nvme_for_each_host(root, host) {
    nvme_subsystem_t subsystem = nullptr;
    nvme_for_each_subsystem(host, subsystem) visit(subsystem);
  }
}

std::vector<Subsystem> described(nvme_root_t root) {
  std::vector<Subsystem> all;
  nvme_ctrl_t controller = nullptr;
  nvme_ns_t space = nullptr;
  each_subsystem(root, [&](nvme_subsystem_t subsystem) {
    Subsystem& into = entry_of(all, subsystem);
    nvme_subsystem_for_each_ns(subsystem, space) entry_of(into, space);
    nvme_subsystem_for_each_ctrl(subsystem, controller) {
      add_controller(into, controller);
      ask_controller(controller, into);
    }
  });
  each_subsystem(root, [&](nvme_subsystem_t subsystem) {
    nvme_subsystem_for_each_ctrl(subsystem, controller)
        add_paths(entry_of(all, subsystem), controller);
  });
  for (Subsystem& each : all) {
    std::ranges::sort(each.controllers, {}, &Path::controller);
    std::ranges::sort(each.namespaces, {}, &SeenNamespace::block);
    for (SeenNamespace& one : each.namespaces) std::ranges::sort(one.paths, {}, &Path::controller);
  }
  std::ranges::sort(all, {}, &Subsystem::name);
  return all;
}

}  // namespace

Result<std::vector<Subsystem>> topology() {
  std::error_code failed;
  std::vector<Subsystem> all;
  if (!std::filesystem::exists("/sys/class/nvme", failed)) return all;  // no driver
  const std::unique_ptr<std::remove_pointer_t<nvme_root_t>, decltype(&nvme_free_tree)> root(
      nvme_create_root(stderr, LOG_ERR), &nvme_free_tree);
  if (root == nullptr) return Error{ENOMEM, "libnvme"};
  if (nvme_scan_topology(root.get(), nullptr, nullptr) < 0 && errno != ENOENT)
    return Error{errno != 0 ? errno : EIO, "libnvme cannot read /sys/class/nvme"};
  return described(root.get());
}

std::optional<Found> find(const std::vector<Subsystem>& all, std::string_view block) {
  for (const Subsystem& subsystem : all)
    for (const SeenNamespace& space : subsystem.namespaces)
      if (space.block == block) return Found{&subsystem, &space};
  return std::nullopt;
}

}  // namespace streamfs::nvme
