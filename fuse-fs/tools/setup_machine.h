// Reads from /sys, /proc and /dev which devices a machine has that a streamfs could use: disks for
// DATA, persistent memory and DAX filesystems for META. `streamctl setup` makes its proposal from
// the result.
// Thread safety: one call at a time; nothing is changed. An attribute that cannot be read counts as
// absent, because kernels differ in what they show.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fuse-fs/tools/sysfs.h"

namespace streamfs::tools {

// A disk or partition.
struct Disk {
  std::string device;  // the name for DATA=: a link in /dev/disk/by-id, if there is one
  std::string node;    // "/dev/ng0n1", "/dev/sda"; may change from boot to boot
  std::string kind;    // "NVMe", "eMMC", "SD card", "disk"; "… partition"
  std::string model;
  std::string whole;   // the block device as the kernel names it, a partition's whole one
  uint64_t bytes = 0;  // 0: unknown
  bool rotational = false;
  uint16_t streams = 1;
  std::string mechanism = "none";  // as DeviceInfo::mechanism
  bool flush_is_free = false;
  std::string obstacle;  // why it is not free to be DATA; empty: it is free
};

// A namespace of persistent memory (libnvdimm).
struct Memory {
  enum class Mode : uint8_t { kRaw, kFsdax, kDevdax, kSector };
  std::string name;    // "namespace0.0"
  std::string device;  // "/dev/dax0.0" in mode devdax, else "/dev/pmem0"
  Mode mode = Mode::kRaw;
  bool emulated = false;    // DRAM that memmap= set aside: it loses its content with the power
  bool persistent = false;  // the kernel reports a durable persistence domain
  uint64_t bytes = 0;
  std::string obstacle;  // why it is not free; empty: it is free
};
const char* name_of(Memory::Mode mode);  // as `ndctl create-namespace --mode` says it

struct DaxMount {
  std::string folder;
  bool persistent = false;
  bool writable = true;
};

struct MemoryRange {
  uint64_t begin = 0, end = 0;
};

struct Machine {
  std::vector<Disk> disks;       // sorted by node
  std::vector<Memory> memories;  // sorted by name
  std::vector<DaxMount> dax_mounts;
  std::vector<std::string> memmap;  // values of memmap=SIZE!START on the kernel's command line
  std::vector<MemoryRange> ram;     // used by the kernel; empty: it does not say
  uint64_t ram_bytes = 0;
  bool has_battery = false;
  bool has_ndctl = false, has_classifierd = false;
  bool runs_systemd = false;
  std::vector<MountEntry> mounts;
  std::string var_lib_disk;  // the disk of /var/lib, as Disk::whole; empty: unknown
};

// The facts that an opened device tells. A test answers from a table.
struct DeviceAnswer {
  uint64_t bytes = 0;
  uint16_t streams = 1;
  std::string mechanism = "none";
  bool flush_is_free = false;
  std::optional<std::string> holds;  // as pair::signature_of()
  std::string kind = "block";        // as DeviceInfo::kind
};
struct Questions {
  std::function<Result<DeviceAnswer>(const std::string& data)> disk;
  std::function<Result<std::optional<std::string>>(const std::string& devdax)> memory;
};
// Returns why a device with this answer is not free; empty: it is free.
std::string obstacle_in(const Result<DeviceAnswer>& answer);

// Asks the devices of this machine. Opens them for reading and waits for no lock.
Questions ask_devices();

// Reads the machine below `root`, which is "/" or a folder of a test.
Machine read_machine(const std::filesystem::path& root, const Questions& questions);

// Returns DATA that the user named: one of the machine's disks, or else a Disk whose kind is
// DeviceInfo::kind.
Disk named_disk(const Machine& machine, const std::string& data, const Questions& questions);

}  // namespace streamfs::tools
