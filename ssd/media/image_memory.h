// The persistent memory of a hybrid FTL, a part of the image file (layout.h).
//
// Thread safety: that of every region (pmem/region.h).
// After a crash: the death of the process loses no store, flushed or not. Death of the machine: see
// layout.h.
#pragma once

#include <memory>

#include "base/result.h"
#include "pmem/region.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

// Maps the memory in the image `fd`. With `read_only` stores stay in this mapping.
// Requires: the geometry is of a hybrid FTL. Errors: those of mmap.
Result<std::unique_ptr<pmem::Region>> map_memory(int fd, const Geometry& geometry, bool read_only);

}  // namespace streamfs::ssd
