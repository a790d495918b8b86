#include "fuse-fs/tools/setup_proposal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "fuse-fs/tools/setup_consequences.h"
#include "fuse-fs/tools/setup_machine.h"
#include "fuse-fs/tools/sysfs.h"
#include "pmem/region.h"

namespace streamfs::tools {
namespace {

using pmem::MetaClass;

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kMemorySection = 128 * kMiB;  // Linux adds memory in sections of this size

std::string devdax_command(const Memory& memory) {
  return fmt::format("ndctl create-namespace -f -e {} -m devdax", memory.name);
}

class Proposer {
 public:
  Proposer(const Machine& machine, const Wish& wish) : machine_(machine), wish_(wish) {
    out_.mountpoint = wish.mountpoint;
  }

  Proposal made() {
    choose_data();
    choose_meta();
    if (!out_.possible()) return std::move(out_);
    add_notes();
    write_config();
    choose_units();
    list_steps();
    out_.consequences = consequences_of(out_, machine_);
    return std::move(out_);
  }

 private:
  // ---- DATA
  void choose_data() {
    if (wish_.data) {
      if (wish_.data->obstacle.empty())
        out_.data = *wish_.data;
      else
        refuse(wish_.data->node, wish_.data->obstacle);
      return;
    }
    // Prefers streams, then NVMe, then a whole disk without moving parts, then size.
    const auto rank = [](const Disk& disk) {
      return std::tuple(disk.streams > 1, !disk.rotational, disk.kind.starts_with("NVMe"),
                        !disk.kind.ends_with("partition"), disk.bytes);
    };
    for (const Disk& each : machine_.disks) {
      if (!each.obstacle.empty()) {
        refuse(each.node, each.obstacle);
      } else if (!out_.possible() || rank(each) > rank(out_.data)) {
        out_.data = each;
      }
    }
  }

  void refuse(const std::string& device, const std::string& why, const std::string& remedy = {}) {
    out_.refused.push_back({device, why, remedy});
  }

  // ---- META
  void choose_meta() {
    if (!wish_.meta.empty()) return take_named_meta();
    const bool chosen = take_memory(false) || take_dax_mount() || take_memory(true);
    refuse_other_memories();
    if (!chosen) take_file();
  }

  void take_named_meta() {
    for (const Memory& each : machine_.memories) {
      if (each.device != wish_.meta) continue;
      if (usable(each)) return take(each);
      refuse_memory(each);
      out_.data = {};
      return;
    }
    for (const DaxMount& each : machine_.dax_mounts)
      if (wish_.meta.starts_with(each.folder + "/")) return take(each, wish_.meta);
    take_file(wish_.meta);
  }

  // Only DRAM is made devdax unasked, because it lost its content at the last boot anyway.
  bool usable(const Memory& memory) const {
    const bool becomes_devdax = memory.emulated && machine_.has_ndctl;
    return memory.obstacle.empty() && (memory.mode == Memory::Mode::kDevdax || becomes_devdax);
  }

  bool take_memory(bool emulated) {
    const Memory* best = nullptr;
    for (const Memory& each : machine_.memories) {
      const bool better = best == nullptr || std::tuple(each.persistent, each.bytes) >
                                                 std::tuple(best->persistent, best->bytes);
      if (each.emulated == emulated && usable(each) && better) best = &each;
    }
    if (best == nullptr) return false;
    take(*best);
    return true;
  }

  void take(const Memory& memory) {
    taken_ = memory;
    out_.meta_class = memory.persistent ? MetaClass::kPersistent : MetaClass::kVolatile;
    out_.meta_kind = memory.emulated ? "DRAM set aside by memmap=" : "persistent memory";
    out_.meta = memory.mode == Memory::Mode::kDevdax ? memory.device : devdax_after(memory);
    if (memory.emulated) out_.pmem_namespace = memory.name;
  }

  // Returns the device that a namespace has once it is devdax: daxREGION.0, because a namespace of
  // memmap= takes a region whole.
  static std::string devdax_after(const Memory& memory) {
    const size_t begin = memory.name.find_first_of("0123456789");
    const size_t end = memory.name.find('.');
    return fmt::format("/dev/dax{}.0", memory.name.substr(begin, end - begin));
  }

  void refuse_other_memories() {
    for (const Memory& each : machine_.memories)
      if (!taken_ || taken_->name != each.name) refuse_memory(each);
  }

  void refuse_memory(const Memory& memory) {
    const std::string device = memory.device.empty() ? memory.name : memory.device;
    if (!memory.obstacle.empty()) return refuse(device, memory.obstacle);
    if (memory.mode == Memory::Mode::kDevdax) return refuse(device, "is not needed");
    const std::string mode = name_of(memory.mode);
    if (!memory.emulated)
      return refuse(device, "is in mode " + mode + ", and to make it devdax takes away its content",
                    devdax_command(memory));
    if (taken_) return refuse(device, "is not needed");
    refuse(device, "is in mode " + mode + ", and ndctl, which makes it devdax, is not installed",
           "apt-get install ndctl && " + devdax_command(memory));
  }

  bool take_dax_mount() {
    for (const DaxMount& each : machine_.dax_mounts) {
      if (!each.writable || !each.persistent) continue;
      take(each, each.folder + "/streamfs" + meta_suffix());
      return true;
    }
    return false;
  }

  void take(const DaxMount& mount, const std::string& file) {
    out_.meta = file;
    out_.meta_class = mount.persistent ? MetaClass::kPersistent : MetaClass::kVolatile;
    out_.meta_kind = "a file on the DAX filesystem at " + mount.folder;
  }

  // "/srv/data" becomes "-srv-data.meta".
  std::string meta_suffix() const {
    std::string name = wish_.mountpoint;
    std::ranges::replace(name, '/', '-');
    return name + ".meta";
  }

  void take_file(const std::string& named = {}) {
    out_.meta = named.empty() ? "/var/lib/streamfs" + wish_.mountpoint + ".meta" : named;
    const auto mount = mount_of(machine_.mounts, out_.meta);
    const bool device = out_.meta.starts_with("/dev/");
    const bool in_memory = device ? out_.meta.starts_with("/dev/dax")
                                  : mount && (mount->type == "tmpfs" || mount->type == "ramfs");
    out_.meta_class = in_memory ? MetaClass::kVolatile : MetaClass::kSynced;
    out_.meta_kind = device ? "a device" : "a file";
  }

  // ---- What is written
  void write_config() {
    out_.config_file = "/etc/streamfs" + wish_.mountpoint + ".conf";
    out_.config = fmt::format("# Written by streamctl setup.\nDATA={}\nMETA={}\n", out_.data.device,
                              out_.meta);
    if (!out_.pmem_namespace.empty())
      out_.config += fmt::format("PMEM_NAMESPACE={}\n", out_.pmem_namespace);
  }

  void choose_units() {
    const std::string name = escaped_path(wish_.mountpoint);
    const auto add = [&](std::string_view unit, std::string_view suffix) {
      out_.units.push_back(fmt::format("{}@{}.{}", unit, name, suffix));
    };
    if (!out_.pmem_namespace.empty()) add("streamfs-pmem", "service");
    add("streamfs", "service");
    if (machine_.has_classifierd) add("classifierd", "service");
    if (machine_.has_battery) add("streamfs-suspend", "service");
    for (const char* timer : {"streamfs-trim", "streamfs-maintain", "streamfs-scrub"})
      add(timer, "timer");
  }

  void run(std::vector<std::string> command, std::string why) {
    out_.steps.push_back({std::move(command), {}, {}, std::move(why)});
  }

  void make_devdax(const Memory& memory) {
    run({"blkdiscard", "--zeroout", memory.device},
        "DRAM holds anything after power-on; mkfs.streamfs refuses what is not empty");
    run({"ndctl", "create-namespace", "--bus=e820", "-f", "-e", memory.name, "-m", "devdax"},
        fmt::format("mode {} becomes devdax, {}", name_of(memory.mode), out_.meta));
    run({"udevadm", "settle", "--timeout=60"},
        fmt::format("udev loads the driver of {} in the background", out_.meta));
  }

  void list_steps() {
    if (taken_ && taken_->mode != Memory::Mode::kDevdax) make_devdax(*taken_);
    std::vector<std::string> folders = {"mkdir", "-p", wish_.mountpoint,
                                        std::filesystem::path(out_.config_file).parent_path()};
    if (!out_.meta.starts_with("/dev/"))
      folders.push_back(std::filesystem::path(out_.meta).parent_path());
    run(std::move(folders), "the mountpoint, and folders of the files below");
    run({"mkfs.streamfs", "--meta", out_.meta, out_.data.device},
        "an empty filesystem; a device that holds something is refused");
    out_.steps.push_back({{}, out_.config_file, out_.config, "the settings of the units"});
    if (!machine_.runs_systemd) return;
    std::vector<std::string> enable = {"systemctl", "enable", "--now"};
    enable.insert(enable.end(), out_.units.begin(), out_.units.end());
    run(std::move(enable), "mounts, at each boot too");
  }

  // ---- What else to say
  void add_notes() {
    if (!machine_.runs_systemd)
      note(
          fmt::format("systemd does not run here, so no unit is enabled; mount with: streamfs {} "
                      "{} -o meta={}",
                      out_.data.device, wish_.mountpoint, out_.meta));
    if (out_.data.device == out_.data.node && out_.data.node.starts_with("/dev/"))
      note(
          fmt::format("{} has no link in /dev/disk/by-id. If its name changes at a boot, the mount "
                      "refuses the other device, and {} has to be corrected",
                      out_.data.node, "/etc/streamfs" + wish_.mountpoint + ".conf"));
    if (out_.data.streams <= 1)
      note("DATA has no streams: everything works, and nothing is separated by lifetime");
    if (out_.data.rotational)
      note("DATA is a disk with moving parts, for which streamfs is not made");
    if (out_.meta_class == MetaClass::kSynced && !machine_.var_lib_disk.empty() &&
        out_.data.whole == machine_.var_lib_disk && wish_.meta.empty())
      note("DATA and META are on one disk: if it fails, both are lost");
    if (!machine_.has_classifierd)
      note("classifierd is not installed; vStreams are grouped by measured lifetime without it");
    note_memmap();
  }

  void note(std::string text) { out_.notes.push_back(std::move(text)); }

  void note_memmap() {
    const bool none_emulated = std::ranges::none_of(machine_.memories, &Memory::emulated);
    if (!machine_.memmap.empty() && none_emulated) {
      note(
          "memmap= is on the kernel's command line, and no memory of it shows: `modprobe nd_e820 "
          "nd_pmem`, or the range is no RAM (/proc/iomem)");
    }
    if (!machine_.memmap.empty() || !machine_.memories.empty() || !machine_.dax_mounts.empty())
      return;
    note(fmt::format(
        "this machine has no persistent memory. DRAM can emulate it: the kernel parameter {} takes "
        "that much from programs for good, its content goes with the power, and each mount after "
        "that rebuilds META from the log on DATA. META is no safer in it than in a file",
        memmap_parameter()));
  }

  // Returns memmap=SIZE!START for the end of RAM, with the size that META needs for DATA, at most
  // an eighth of RAM.
  std::string memmap_parameter() const {
    const uint64_t needed = out_.data.bytes / 1000 * 55;
    const uint64_t most = std::max(machine_.ram_bytes / 8, kMemorySection);
    const uint64_t size =
        std::clamp(needed, kMemorySection, most) / kMemorySection * kMemorySection;
    const auto range = std::ranges::max_element(
        machine_.ram, {}, [](const MemoryRange& each) { return each.end - each.begin; });
    if (range == machine_.ram.end() || range->end - range->begin < 2 * size)
      return "memmap=SIZE!START (a range of System RAM in /proc/iomem)";
    const uint64_t start = (range->end - size) / kMemorySection * kMemorySection;
    return fmt::format("memmap={}M!{}M", size / kMiB, start / kMiB);
  }

  const Machine& machine_;
  const Wish& wish_;
  std::optional<Memory> taken_;
  Proposal out_;
};

}  // namespace

Proposal propose(const Machine& machine, const Wish& wish) {
  return Proposer(machine, wish).made();
}

std::string escaped_path(const std::string& path) {
  std::string out;
  const size_t begin = path.find_first_not_of('/');
  if (begin == std::string::npos) return "-";
  for (size_t i = begin; i < path.size(); ++i) {
    const char c = path[i];
    if (c == '/') {
      if (i + 1 < path.size() && path[i + 1] != '/') out += '-';
      continue;
    }
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == ':' || c == '_' || (c == '.' && !out.empty());
    out += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace streamfs::tools
