// META and DATA of one filesystem, and how they are to be opened.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::pair {

struct PairOptions {
  bool read_only = false;
  double real_time = 0;         // an emulated SSD answers as late as its flash would, times this
  bool restore_meta = false;    // rebuild META from the log on DATA, wherever it is to be
  bool meta_as_it_is = false;   // never from the log, even if the machine went down amid its use
  bool meta_in_memory = false;  // rebuild META from the log in memory; only to read
  std::string mirror_path;      // where META is a second time
  bool make_mirror = false;     // mirror_path may hold anything: it becomes a copy
  bool degraded = false;        // go on with one copy of a META that is kept twice
  double wait_seconds = 10;     // for a device whose last daemon is still draining
};

// Both devices, open and known to belong together.
struct OpenPair {
  std::unique_ptr<pmem::Region> region;
  std::unique_ptr<blockdev::Device> device;
  meta::Superblock super;
  meta::DataLabel label;
  std::string degraded;   // META is kept twice and here once: what is missing and why
  bool in_order = false;  // what META is of lay on a medium that keeps the order of stores
  bool unproven = false;  // META may hold any mix of old and new: it has to be checked first
};

}  // namespace streamfs::pair
