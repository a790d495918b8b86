// The pages that a snapshot of META has, and the cost of finding them.
#include "fuse-fs/meta/used_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/types.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"
#include "tests/unit/pmem/borrowed_region.h"

namespace streamfs::meta {
namespace {

class UsedPagesTest : public testing::Test {
 protected:
  void SetUp() override {
    FormatOptions options;
    options.data_blocks = 1 << 20;
    options.meta_log = true;
    const auto plan = plan_format(words_->size(), pmem::MetaClass::kPersistent, options);
    ASSERT_TRUE(plan.ok()) << plan.error().message();
    ASSERT_TRUE(format(*words_, *plan, Timestamp{1, 0}).ok());
    geometry_ = *Geometry::from(*load_superblock(*words_, false));
  }
  std::vector<uint64_t> all() const {
    return used_pages(*words_, geometry_, SnapshotScope::kWithoutChecksums);
  }
  uint64_t heap(uint64_t unit) const { return geometry_.unit_offset(unit); }

  std::unique_ptr<pmem::Region> words_ =
      pmem::make_memory_region(64 << 20, pmem::MetaClass::kPersistent);
  Geometry geometry_;
};

TEST_F(UsedPagesTest, EachLookFindsWhatHoldsAnything) {
  pmem::BorrowedRegion region(*words_);
  const uint64_t last = geometry_.heap_units() - 1;
  region.store_word(heap(last), 1);  // before anybody notes what changes
  UsedPages used(region);
  region.store_word(heap(last - 100) + kUnitSize - kWordSize, 1);
  EXPECT_EQ(used.look(geometry_), all());
  region.store_word(heap(last - 200), 1);
  region.store_masked(heap(last - 300), 0xff, 0xff);
  region.store_half(heap(last - 400) + 4, 1);
  const std::vector<uint64_t> two(kUnitSize / kWordSize, 7);
  region.store(heap(last - 500) + kUnitSize / 2, two);  // the end of one, the beginning of another
  const auto found = used.look(geometry_);
  EXPECT_EQ(found, all());
  for (const uint64_t unit : {0UL, 100UL, 200UL, 300UL, 400UL, 500UL, 499UL})
    EXPECT_TRUE(std::ranges::count(found, heap(last - unit)) == 1) << unit;
  region.store_zeroes(heap(last), kUnitSize);
  EXPECT_EQ(used.look(geometry_), all()) << "without what holds nothing any more";
}

TEST_F(UsedPagesTest, OnlyTheFirstLookIsAtAllOfIt) {
  pmem::BorrowedRegion region(*words_);
  uint64_t loads = 0;
  region.on_each_load([&](uint64_t) { ++loads; });
  UsedPages used(region);
  (void)used.look(geometry_);
  const uint64_t words = words_->size() / kWordSize;
  EXPECT_GT(loads, words / 2);
  loads = 0;
  region.store_word(heap(geometry_.heap_units() / 2), 1);
  (void)used.look(geometry_);
  EXPECT_LT(loads, words / 100);
}

}  // namespace
}  // namespace streamfs::meta
