// Lists the NVMe subsystems of this machine and the controllers by which Linux reaches their
// namespaces, from libnvme's topology.
//
// libnvme reads /sys and sends an Identify to every namespace. A namespace that cannot be opened
// (no permission, no live path) is missing, and one that does not answer blocks the caller until
// the kernel's timeout. Use this to inform people only; opening a device uses linux.h.
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
  std::string access;  // ANA state; empty if there is none
  friend bool operator==(const Path&, const Path&) = default;
};

struct SeenNamespace {
  std::string block, generic;  // names in /dev
  uint32_t nsid = 0;
  uint64_t lbas = 0, lba_bytes = 0, metadata_bytes = 0;
  bool is_multipath = false;  // the kernel chooses among the paths
  std::vector<Path> paths;    // one if not is_multipath
};

struct Subsystem {
  std::string name, nqn, model, serial, firmware;
  std::vector<Path> controllers;  // `access` is empty: it belongs to a namespace
  // As the first controller that answers says; unknown if none does.
  std::optional<bool> has_fdp, has_directives;
  std::vector<SeenNamespace> namespaces;
};

// Returns the subsystems, sorted by name; none on a machine without NVMe. Errors: those of libnvme.
Result<std::vector<Subsystem>> topology();

struct Found {
  const Subsystem* subsystem = nullptr;
  const SeenNamespace* space = nullptr;
};
// Returns the namespace of a block device ("nvme0n1") and its subsystem, both pointing into `all`.
std::optional<Found> find(const std::vector<Subsystem>& all, std::string_view block);

}  // namespace streamfs::nvme
