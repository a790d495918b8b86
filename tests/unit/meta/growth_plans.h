// Superblocks and requests for tests of growth.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/growth.h"

namespace streamfs::meta {

inline Superblock planned(uint64_t data_blocks, bool log = false) {
  FormatOptions options;
  options.data_blocks = data_blocks;
  options.meta_log = log;
  return plan_format(first_meta_size(options), pmem::MetaClass::kSynced, options).value();
}

inline GrowthRequest of_a_file(const Superblock& now, uint64_t data_blocks) {
  GrowthRequest request;
  request.data_blocks = data_blocks;
  request.meta_bytes = now.meta_size;
  request.extensible = true;
  return request;
}

// Where every piece of every region is stays where it was.
inline void expect_nothing_moved(const Superblock& before, const Superblock& after) {
  const Geometry old = Geometry::from(before).value();
  const Geometry grown = Geometry::from(after).value();
  for (uint32_t kind = 0; kind < static_cast<uint32_t>(RegionKind::kCount); ++kind) {
    const auto region = static_cast<RegionKind>(kind);
    for (uint64_t at = 0; at < old.region_bytes(region); at += kUnitSize) {
      ASSERT_EQ(old.region_offset(region, at), grown.region_offset(region, at)) << kind;
    }
  }
  EXPECT_EQ(before.first_data_block, after.first_data_block);
}

inline double files_per_block(const Superblock& super) {
  return static_cast<double>(inodes_possible(super, super.meta_size)) /
         static_cast<double>(super.data_blocks);
}

inline uint64_t segments_of(const Superblock& super, RegionKind kind) {
  const auto& all = super.regions[static_cast<size_t>(kind)].segments;
  return static_cast<uint64_t>(
      std::ranges::count_if(all, [](const Segment& each) { return each.length > 0; }));
}

}  // namespace streamfs::meta
