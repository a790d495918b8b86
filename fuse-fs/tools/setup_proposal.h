// Proposes how a machine should have its streamfs: DATA, META, the file in /etc/streamfs, units,
// and the commands that set it up, with the consequences for safety in words. Thread safety: pure
// functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fuse-fs/tools/setup_machine.h"
#include "pmem/region.h"

namespace streamfs::tools {

struct Wish {
  std::string mountpoint = "/srv/data";  // absolute
  std::optional<Disk> data;              // the user named it
  std::string meta;                      // the user named it; empty: choose
};

// A step of the set-up: a command, or else a file to write.
struct Step {
  std::vector<std::string> command;
  std::string file, content;
  std::string why;
};

struct Consequence {
  std::string event, effect;
};

// A device that was not chosen.
struct Refusal {
  std::string device, why;
  std::string remedy;  // the command that makes it usable; empty: there is none
};

struct Proposal {
  std::string mountpoint;
  Disk data;  // without a device if none is free
  std::string meta;
  pmem::MetaClass meta_class = pmem::MetaClass::kSynced;
  std::string meta_kind;       // for people: "devdax, DRAM set aside by memmap="
  std::string pmem_namespace;  // streamfs-pmem@.service makes it again; empty: not emulated
  std::string config_file, config;
  std::vector<std::string> units;  // to enable, in the order of their start
  std::vector<Step> steps;
  std::vector<Consequence> consequences;
  std::vector<Refusal> refused;
  std::vector<std::string> notes;
  // False if no disk is free to be DATA; only `refused` and `notes` have content then.
  bool possible() const { return !data.device.empty(); }
};

Proposal propose(const Machine& machine, const Wish& wish);

// Returns the name of a unit's instance for an absolute path, as `systemd-escape -p` does.
std::string escaped_path(const std::string& path);

}  // namespace streamfs::tools
