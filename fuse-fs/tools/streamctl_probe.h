// streamctl probe DEVICE…: tells which devices are the DATA or META of a streamfs, as blkid(8) does
// for filesystems that it knows. udev's rule (systemd/65-streamfs.rules) runs it.
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
// Takes no lock, because a device may be mounted. nullopt: it is no streamfs, or a damaged one.
// Errors: those of opening and reading it.
Result<std::optional<Probed>> probe_device(const std::string& path);

// Returns the text as udev wants it: ASCII other than letters, digits and "#+-.:=@_" becomes \xNN.
std::string udev_escaped(const std::string& text);

}  // namespace streamfs::tools
