#include "fuse-fs/tools/setup_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/sysmacros.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fuse-fs/tools/setup_machine.h"
#include "fuse-fs/tools/sysfs.h"
#include "pmem/persistence_domain.h"

namespace streamfs::tools {
namespace {

namespace fs = std::filesystem;

// The provider of the bus that memmap=SIZE!START makes (nd_e820).
constexpr std::string_view kEmulatedProvider = "e820";

bool is_durable(const std::string& domain) {
  return domain == pmem::kDomainCpuCache || domain == pmem::kDomainMemoryController;
}

Memory::Mode mode_of(const std::string& text) {
  if (text == "dax") return Memory::Mode::kDevdax;
  if (text == "memory") return Memory::Mode::kFsdax;
  return text == "safe" ? Memory::Mode::kSector : Memory::Mode::kRaw;
}

// Returns the text of the nearest attribute of this name in the folder or above it.
std::string above(fs::path folder, const char* attribute) {
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    std::error_code failed;
    if (fs::exists(folder / attribute, failed)) return text_in(folder / attribute);
  }
  return {};
}

// Returns the block device ("pmem0") that a namespace or its holder has.
std::string block_of(const fs::path& folder) {
  const auto names = names_in(folder / "block");
  return names.empty() ? std::string() : names.front();
}

// Returns the character device ("dax0.0") that a namespace's holder has.
std::string devdax_of(const fs::path& holder) {
  for (const std::string& each : names_in(holder))
    if (each.starts_with("dax") && each.find('.') != std::string::npos) return each;
  return {};
}

class MemoryReader {
 public:
  MemoryReader(fs::path root, const Questions& questions, const std::vector<MountEntry>& mounts)
      : root_(std::move(root)), questions_(questions), mounts_(mounts) {}

  std::vector<Memory> all() const {
    std::vector<Memory> found;
    const fs::path devices = root_ / "sys/bus/nd/devices";
    for (const std::string& name : names_in(devices)) {
      // A namespace of size 0 is the seed of the next one.
      if (!name.starts_with("namespace") || number_in(devices / name / "size") == 0) continue;
      std::error_code failed;
      const fs::path folder = fs::canonical(devices / name, failed);
      if (!failed) found.push_back(described(folder, name));
    }
    return found;
  }

 private:
  Memory described(const fs::path& folder, const std::string& name) const {
    Memory memory;
    memory.name = name;
    memory.mode = mode_of(text_in(folder / "mode"));
    memory.bytes = number_in(folder / "size");
    memory.emulated = above(folder, "provider") == kEmulatedProvider;
    memory.persistent = is_durable(above(folder, "persistence_domain"));
    const std::string holder = text_in(folder / "holder");
    const fs::path holding = holder.empty() ? folder : folder.parent_path() / holder;
    if (memory.mode == Memory::Mode::kDevdax) {
      find_devdax(memory, devdax_of(holding));
    } else {
      find_block(memory, block_of(holding), holding);
    }
    return memory;
  }

  void find_devdax(Memory& memory, const std::string& device) const {
    if (device.empty()) {
      memory.obstacle = "has no device in /dev; load the kernel module device_dax";
      return;
    }
    memory.device = "/dev/" + device;
    if (const uint64_t bytes = number_in(root_ / "sys/bus/dax/devices" / device / "size"))
      memory.bytes = bytes;
    const auto holds = questions_.memory(memory.device);
    if (!holds.ok()) {
      memory.obstacle = "cannot be read: " + holds.error().message();
    } else if (*holds) {
      memory.obstacle = "holds " + **holds;
    }
  }

  void find_block(Memory& memory, const std::string& device, const fs::path& holding) const {
    if (device.empty()) {
      memory.obstacle = "has no device in /dev; load the kernel module nd_pmem";
      return;
    }
    memory.device = "/dev/" + device;
    const fs::path block = holding / "block" / device;
    for (const MountEntry& each : mounts_) {
      if (each.device != text_in(block / "dev") && !each.source.starts_with(memory.device))
        continue;
      memory.obstacle = "is mounted at " + each.folder;
      return;
    }
    if (const auto holders = names_in(block / "holders"); !holders.empty()) {
      memory.obstacle = fmt::format("is used by {}", fmt::join(holders, ", "));
      return;
    }
    memory.obstacle = obstacle_in(questions_.disk(memory.device));
  }

  fs::path root_;
  const Questions& questions_;
  const std::vector<MountEntry>& mounts_;
};

std::optional<dev_t> number_of(const std::string& device) {
  unsigned int major_number = 0, minor_number = 0;
  const char* const end = device.data() + device.size();
  const auto [colon, bad] = std::from_chars(device.data(), end, major_number);
  if (bad != std::errc{} || colon == end || *colon != ':') return std::nullopt;
  if (std::from_chars(colon + 1, end, minor_number).ec != std::errc{}) return std::nullopt;
  return makedev(major_number, minor_number);
}

std::vector<DaxMount> dax_mounts(const fs::path& root, const std::vector<MountEntry>& mounts) {
  std::vector<DaxMount> found;
  for (const MountEntry& each : mounts) {
    if (!each.has("dax") && !each.has("dax=always")) continue;
    const auto device = number_of(each.device);
    const bool durable =
        device && is_durable(pmem::persistence_domain(root / "sys", "block", *device));
    found.push_back({each.folder, durable, !each.has("ro")});
  }
  return found;
}

std::vector<std::string> memmap_words(const fs::path& root) {
  constexpr std::string_view kOption = "memmap=";
  std::vector<std::string> found;
  for (const std::string& word : words_of(text_in(root / "proc/cmdline")))
    if (word.starts_with(kOption) && word.find('!') != std::string::npos)
      found.push_back(word.substr(kOption.size()));
  return found;
}

// Reads "100000000-27fffffff : System RAM". Users other than root read zeroes.
std::vector<MemoryRange> ram_ranges(const fs::path& root) {
  std::vector<MemoryRange> found;
  std::ifstream in(root / "proc/iomem");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(' ') || !line.ends_with(": System RAM")) continue;
    MemoryRange range;
    const char* const end = line.data() + line.size();
    const auto [dash, bad] = std::from_chars(line.data(), end, range.begin, 16);
    if (bad != std::errc{} || dash == end || *dash != '-') continue;
    if (std::from_chars(dash + 1, end, range.end, 16).ec != std::errc{}) continue;
    if (range.end != 0) found.push_back({range.begin, range.end + 1});
  }
  return found;
}

uint64_t ram_bytes(const fs::path& root) {
  std::ifstream in(root / "proc/meminfo");
  std::string key;
  uint64_t kibibytes = 0;
  in >> key >> kibibytes;
  return key == "MemTotal:" ? kibibytes * 1024 : 0;
}

}  // namespace

const char* name_of(Memory::Mode mode) {
  switch (mode) {
    case Memory::Mode::kFsdax:
      return "fsdax";
    case Memory::Mode::kDevdax:
      return "devdax";
    case Memory::Mode::kSector:
      return "sector";
    case Memory::Mode::kRaw:
      return "raw";
  }
  return "unknown";
}

void read_memory(const fs::path& root, const Questions& questions, Machine& machine) {
  machine.memories = MemoryReader(root, questions, machine.mounts).all();
  machine.dax_mounts = dax_mounts(root, machine.mounts);
  machine.memmap = memmap_words(root);
  machine.ram = ram_ranges(root);
  machine.ram_bytes = ram_bytes(root);
}

}  // namespace streamfs::tools
