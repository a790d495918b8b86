// Bundles references to the objects that every part of the engine works on. Each object's header
// states its thread safety.
#pragma once

#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/journal.h"
#include "pmem/region.h"

namespace streamfs::meta {

struct Store {
  pmem::Region& region;
  const Geometry& geometry;
  Journal& journal;
};

}  // namespace streamfs::meta
