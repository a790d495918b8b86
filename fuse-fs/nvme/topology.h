// Which NVMe subsystems this machine has, and by which controllers Linux reaches their namespaces:
// libnvme's topology.
//
// libnvme reads /sys and sends an Identify to every namespace of the machine, so a namespace that
// cannot be opened (no permission, no path that lives) is missing, and one that does not answer
// keeps the caller waiting for the kernel's time limit. What we need to open a device is therefore
// read elsewhere (linux.h); this is for people who look.
// Thread safety: one thread at a time. Crash: nothing is changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace streamfs::nvme {

struct Path {
  std::string controller, transport, address;
  std::string state;   // "live", "resetting", "connecting", "dead", ...
  std::string access;  // ANA state; empty where there is none
  friend bool operator==(const Path&, const Path&) = default;
};

struct SeenNamespace {
  std::string block, generic;  // names in /dev
  uint32_t nsid = 0;
  uint64_t lbas = 0, lba_bytes = 0, metadata_bytes = 0;
  // Through the kernel's multipath: one of several it chooses from. Else the one controller.
  bool is_multipath = false;
  std::vector<Path> paths;
};

struct Subsystem {
  std::string name, nqn, model, serial, firmware;
  std::vector<Path> controllers;  // without access, which is a namespace's
  // What the controllers say of themselves; unknown where none could be asked.
  std::optional<bool> has_fdp, has_directives;
  std::vector<SeenNamespace> namespaces;
};

// By name. None on a machine without NVMe. Errors: those of reading /sys.
Result<std::vector<Subsystem>> topology();

// The namespace of a block device "nvme0n1", and its subsystem.
struct Found {
  const Subsystem* subsystem = nullptr;
  const SeenNamespace* space = nullptr;
};
std::optional<Found> find(const std::vector<Subsystem>& all, std::string_view block);

}  // namespace streamfs::nvme
