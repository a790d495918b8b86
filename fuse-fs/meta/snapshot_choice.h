// Chooses the snapshot that a restore begins with.
// Thread safety: pure functions over the device. Nothing is written.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/metadata_log.h"

namespace streamfs::meta {

struct SnapshotChoice {
  SnapshotHeader snapshot{};  // the chosen one, whose pages are whole; generation 0: there is none
  // The next snapshot has this generation, which belongs to the other area.
  uint64_t next_generation = 1;
  // Why the newest snapshot is not the chosen one, or why there is none. Empty: nothing is damaged.
  std::string damage;
  bool found_header = false;  // an area has a valid header, whether or not its pages are whole
};

// Returns the newest snapshot if it is whole; else the other one, if it is whole and the log after
// it has every record that the newest has in its pages. Errors: the device's.
Result<SnapshotChoice> choose_snapshot(const Geometry& geometry, const DataLabel& label,
                                       LogDevice& device);

}  // namespace streamfs::meta
