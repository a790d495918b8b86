// The values of pair.h: META and DATA of one filesystem, and the options for opening them.
// Thread safety: plain values.
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
  double real_time = 0;         // an emulated SSD takes its flash's latency times this; 0: none
  bool restore_meta = false;    // rebuild a lost META from the log on DATA, on any medium
  bool meta_as_it_is = false;   // use META even if it was in use when the machine went down
  bool meta_in_memory = false;  // rebuild META from the log in memory; requires read_only
  std::string mirror_path;      // the second copy of META; empty: only one is named
  bool make_mirror = false;     // overwrite the place of a missing copy (CopiesWanted::overwrite)
  bool declare_persistent = false;  // open META as persistent, whatever the label says
  bool degraded = false;            // use one copy of a META that is kept twice
  double wait_seconds = 10;  // for another process that holds a device, as one that is draining
};

// Both devices, open and known to belong together.
struct OpenPair {
  std::unique_ptr<pmem::Region> region;
  std::unique_ptr<blockdev::Device> device;
  meta::Superblock super;
  meta::DataLabel label;
  std::string degraded;   // why only one of META's two copies is in use; empty: none is missing
  bool in_order = false;  // META's content is from a medium that keeps stores in order
  bool unproven = false;  // META may hold any mix of old and new stores; prove() must come first
};

}  // namespace streamfs::pair
