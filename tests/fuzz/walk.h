// Uses a filesystem as a mount does, whatever is in it: everything that can be reached is read,
// and then changed as the input's operations say. Answers are taken as they come; only what would
// make the floors above misbehave stops the process (a block outside the data area, an endless
// directory).
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fuse-fs/meta/engine.h"
#include "pmem/region.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/input.h"

namespace streamfs::fuzz {

struct Found {
  InodeId parent;
  std::string name;
  InodeId id;
};

// Reads every object once; `found` has the root (without a name) first.
std::vector<Found> walk(meta::Engine& engine);

// `pmem::Region` is the engine's.
void operate(meta::Engine& engine, pmem::Region& region, std::vector<Found>& found,
             std::span<const Operation> operations);

}  // namespace streamfs::fuzz
