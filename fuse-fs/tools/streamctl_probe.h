// streamctl probe DEVICE…: which devices are a streamfs's DATA or META, as blkid(8) says it of the
// filesystems it knows; for udev, whose rule asks it (systemd/65-streamfs.rules).
// Thread safety: one call at a time; probe_device() only reads.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "fuse-fs/tools/command_set.h"

namespace streamfs::tools {

void declare_probe(CLI::App& app, CommandSet& commands);

struct Probed {
  std::string type;  // "streamfs" (DATA) or "streamfs_meta"
  std::string uuid, label;
  uint32_t version = 0;
};
// Takes no lock: a device may be mounted. Nothing: it is no streamfs, or a damaged one. Errors:
// those of opening and reading it.
Result<std::optional<Probed>> probe_device(const std::string& path);

// As udev wants it: every character that means something to it is \xNN.
std::string udev_escaped(const std::string& text);

}  // namespace streamfs::tools
