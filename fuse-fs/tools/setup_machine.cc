#include "fuse-fs/tools/setup_machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/nvme/linux.h"
#include "fuse-fs/pair/signature.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/setup_memory.h"
#include "fuse-fs/tools/sysfs.h"
#include "pmem/region.h"

namespace streamfs::tools {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSectorBytes = 512;
constexpr std::array<std::string_view, 4> kDiskNames = {"nvme", "mmcblk", "sd", "vd"};

// Returns whether the name in /sys/block is a disk's. Each path of a namespace with several paths
// has a hidden disk (nvme0c1n1), and an eMMC has boot areas (mmcblk0boot0).
bool is_disk(std::string_view name) {
  const auto kind = std::ranges::find_if(
      kDiskNames, [&](std::string_view prefix) { return name.starts_with(prefix); });
  if (kind == kDiskNames.end()) return false;
  const std::string_view rest = name.substr(kind->size());
  if (*kind == "sd" || *kind == "vd") return rest.find_first_of("0123456789") == rest.npos;
  if (*kind == "mmcblk") return is_digits(rest);
  const size_t n = rest.find('n');
  return n != rest.npos && is_digits(rest.substr(0, n)) && is_digits(rest.substr(n + 1));
}

std::string kind_of(const fs::path& disk, std::string_view name) {
  if (name.starts_with("nvme")) return "NVMe";
  if (!name.starts_with("mmcblk")) return "disk";
  return text_in(disk / "device/type") == "SD" ? "SD card" : "eMMC";
}

// "nvme0n1" becomes "/dev/ng0n1" if the kernel has the generic device of that namespace.
std::string generic_node(const fs::path& root, const std::string& name) {
  const std::string generic = "ng" + name.substr(std::string_view("nvme").size());
  std::error_code failed;
  const bool there = fs::exists(root / "sys/class/nvme-generic" / generic, failed);
  return there ? "/dev/" + generic : std::string();
}

// Returns the link that names a node at each boot, or else the node.
std::string lasting_name(const fs::path& root, const std::string& node) {
  const std::string wanted = fs::path(node).filename();
  const fs::path links = root / "dev/disk/by-id";
  std::string found;
  for (const std::string& each : names_in(links)) {
    std::error_code failed;
    if (fs::read_symlink(links / each, failed).filename() != wanted) continue;
    const bool numeric = each.starts_with("wwn-") || each.starts_with("nvme-eui.") ||
                         each.starts_with("nvme-uuid.") || each.starts_with("nvme-nvme.");
    if (!numeric) return "/dev/disk/by-id/" + each;
    if (found.empty()) found = "/dev/disk/by-id/" + each;
  }
  return found.empty() ? node : found;
}

class DiskReader {
 public:
  DiskReader(fs::path root, const Questions& questions, const std::vector<MountEntry>& mounts)
      : root_(std::move(root)), questions_(questions), mounts_(mounts) {
    std::ifstream swaps(root_ / "proc/swaps");
    for (std::string line; std::getline(swaps, line);)
      if (const auto words = words_of(line); !words.empty()) swaps_.push_back(words[0]);
  }

  std::vector<Disk> all() const {
    std::vector<Disk> disks;
    for (const std::string& name : names_in(root_ / "sys/block"))
      if (is_disk(name) && number_in(root_ / "sys/block" / name / "size") != 0) add(disks, name);
    std::ranges::sort(disks, {}, &Disk::node);
    return disks;
  }

 private:
  // Adds the disk, or else its partitions that nobody uses: a disk with partitions is none itself.
  void add(std::vector<Disk>& disks, const std::string& name) const {
    const fs::path folder = root_ / "sys/block" / name;
    Disk disk = described(folder, name);
    const std::vector<std::string> partitions = nvme::partitions_of(root_ / "sys", name);
    if (!partitions.empty())
      disk.obstacle = fmt::format("has partitions ({})", fmt::join(partitions, ", "));
    for (const std::string& each : partitions) {
      Disk part = disk;
      part.kind += " partition";
      part.node = "/dev/" + each;
      part.bytes = number_in(folder / each / "size") * kSectorBytes;
      part.obstacle = use_of(folder / each, each);
      finish(part);
      disks.push_back(part);
    }
    finish(disk);
    disks.push_back(disk);
  }

  Disk described(const fs::path& folder, const std::string& name) const {
    Disk disk;
    disk.kind = kind_of(folder, name);
    disk.whole = name;
    disk.model = text_in(folder / "device/model");
    if (disk.model.empty()) disk.model = text_in(folder / "device/name");
    disk.bytes = number_in(folder / "size") * kSectorBytes;
    disk.rotational = number_in(folder / "queue/rotational") == 1;
    disk.node = "/dev/" + name;
    disk.obstacle = use_of(folder, name);
    if (disk.obstacle.empty() && number_in(folder / "removable") == 1)
      disk.obstacle = "is removable";
    if (disk.obstacle.empty() && number_in(folder / "ro") == 1) disk.obstacle = "is read-only";
    return disk;
  }

  // Returns why the kernel says that a block device is in use.
  std::string use_of(const fs::path& folder, const std::string& name) const {
    const std::string device = text_in(folder / "dev");
    for (const MountEntry& each : mounts_)
      if (each.device == device || each.source == "/dev/" + name)
        return "is mounted at " + each.folder;
    if (std::ranges::find(swaps_, "/dev/" + name) != swaps_.end()) return "is used for swap";
    if (const auto holders = names_in(folder / "holders"); !holders.empty())
      return fmt::format("is used by {}", fmt::join(holders, ", "));
    return {};
  }

  // Asks the device itself. An NVMe namespace with streams is DATA by its generic device, which
  // passes them on.
  void finish(Disk& disk) const {
    const bool whole = disk.node == "/dev/" + disk.whole;
    const std::string generic = disk.kind == "NVMe" ? generic_node(root_, disk.whole) : "";
    if (disk.obstacle.empty()) ask(disk, whole && !generic.empty() ? generic : disk.node);
    if (whole && !generic.empty() && disk.streams > 1) disk.node = generic;
    disk.device = lasting_name(root_, disk.node);
  }

  void ask(Disk& disk, const std::string& node) const;

  fs::path root_;
  const Questions& questions_;
  const std::vector<MountEntry>& mounts_;
  std::vector<std::string> swaps_;
};

void take(Disk& disk, const Result<DeviceAnswer>& answer) {
  disk.obstacle = obstacle_in(answer);
  if (!answer.ok()) return;
  if (answer->bytes != 0) disk.bytes = answer->bytes;
  disk.streams = answer->streams;
  disk.mechanism = answer->mechanism;
  disk.flush_is_free = answer->flush_is_free;
}

void DiskReader::ask(Disk& disk, const std::string& node) const {
  take(disk, questions_.disk(node));
}

bool has_program(const fs::path& root, const char* name) {
  constexpr std::array<const char*, 4> kFolders = {"usr/bin", "usr/sbin", "usr/local/bin",
                                                   "usr/local/sbin"};
  return std::ranges::any_of(kFolders, [&](const char* folder) {
    std::error_code failed;
    return fs::exists(root / folder / name, failed);
  });
}

bool has_battery(const fs::path& root) {
  const fs::path folder = root / "sys/class/power_supply";
  return std::ranges::any_of(names_in(folder), [&](const std::string& each) {
    return text_in(folder / each / "type") == "Battery" &&
           text_in(folder / each / "scope") != "Device";
  });
}

// Returns the disk of a block device "8:1".
std::string whole_disk(const fs::path& root, const std::string& device) {
  std::error_code failed;
  const fs::path real = fs::canonical(root / "sys/dev/block" / device, failed);
  if (failed) return {};
  return fs::exists(real / "partition", failed) ? real.parent_path().filename() : real.filename();
}

std::string disk_of(const fs::path& root, const Machine& machine, const std::string& path) {
  const auto mount = mount_of(machine.mounts, path);
  return mount ? whole_disk(root, mount->device) : std::string();
}

Result<DeviceAnswer> ask_disk(const std::string& data) {
  blockdev::OpenOptions options;
  options.wait_seconds = 0;
  options.read_only = true;
  SFS_ASSIGN(const std::unique_ptr<blockdev::Device> device,
             blockdev::open_device(absolute_data(data), options));
  const blockdev::DeviceInfo& info = device->info();
  DeviceAnswer answer{info.capacity_blocks * kBlockSize,
                      info.pstream_count,
                      info.mechanism,
                      info.flush_is_free,
                      {},
                      info.kind};
  SFS_ASSIGN(answer.holds, pair::signature_of(*device));
  return answer;
}

Result<std::optional<std::string>> ask_memory(const std::string& devdax) {
  pmem::OpenOptions options;
  options.read_only = true;
  options.wait_seconds = 0;
  SFS_ASSIGN(const std::unique_ptr<pmem::Region> region, pmem::open_region(devdax, options));
  return pair::signature_of(*region);
}

}  // namespace

std::string obstacle_in(const Result<DeviceAnswer>& answer) {
  if (answer.ok()) return answer->holds ? "holds " + *answer->holds : std::string();
  return answer.error().code == EBUSY ? "is in use by another program"
                                      : "cannot be read: " + answer.error().message();
}

Questions ask_devices() {
  return {ask_disk, ask_memory};
}

Machine read_machine(const fs::path& root, const Questions& questions) {
  Machine machine;
  machine.mounts = mounts_of(root);
  machine.disks = DiskReader(root, questions, machine.mounts).all();
  read_memory(root, questions, machine);
  machine.has_battery = has_battery(root);
  machine.has_ndctl = has_program(root, "ndctl");
  machine.has_classifierd = has_program(root, "classifierd");
  std::error_code failed;
  machine.runs_systemd = fs::exists(root / "run/systemd/system", failed);
  machine.var_lib_disk = disk_of(root, machine, "/var/lib/streamfs");
  return machine;
}

Disk named_disk(const Machine& machine, const std::string& data, const Questions& questions) {
  std::error_code failed;
  const fs::path real = fs::canonical(data, failed);
  const std::string block = nvme::block_name_of(real);
  for (const Disk& each : machine.disks) {
    const bool same = each.device == data || each.node == data || (!failed && each.node == real) ||
                      (!block.empty() && each.whole == block && each.node == "/dev/" + block);
    if (same) return each;
  }
  Disk disk;
  disk.device = disk.node = absolute_data(data);
  const Result<DeviceAnswer> answer = questions.disk(disk.device);
  if (answer) disk.kind = answer->kind;
  take(disk, answer);
  return disk;
}

}  // namespace streamfs::tools
