// Growing while mounted.
//
//   clear the new part of META ─► superblock ─► announce (DATA's label) ─► geometry ─► allocators
//                                    └ from here on a mount finds the new size
//
// After a crash: until the geometry is extended no record names new space, so the rings and the old
// or the new superblock are enough.
#include <cstdint>

#include "base/result.h"
#include "fuse-fs/meta/engine_impl.h"
#include "fuse-fs/meta/growth.h"
#include "pmem/region.h"

namespace streamfs::meta {

Result<void> Engine::grow(const Superblock& larger, const Announce& announce) {
  SFS_TRY(writable());
  SFS_ASSIGN(const Geometry planned, Geometry::from(larger));
  const uint64_t from = geometry_.meta_size(), length = larger.meta_size - from;
  region_.store_zeroes(from, length);
  region_.fence(region_.flush(from, length));
  SFS_TRY(region_.sync());  // the new part must be zeroes before the superblock names it
  SFS_ASSIGN(const Superblock next,
             change_superblock([&](Superblock& super) { take_size(super, larger); }));
  SFS_TRY(region_.sync());
  SFS_TRY(announce(next));
  slots_.grow(planned.heap_units());
  geometry_.extend(next);
  heap_.grow();
  blocks_.grow();
  return {};
}

}  // namespace streamfs::meta
