// The objects that every part of the engine works on; it borrows them. Thread safety: see each.
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
