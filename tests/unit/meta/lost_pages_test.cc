// META of which the medium lost pages: nothing that would make the loss final is done.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/snapshot.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"
#include "tests/unit/pmem/borrowed_region.h"

namespace streamfs::meta {
namespace {

class HurtRegion final : public pmem::BorrowedRegion {
 public:
  using BorrowedRegion::BorrowedRegion;
  uint64_t lost() const override { return 1; }

 protected:
  Result<void> make_durable() override { return Error{EIO}; }
};

// A device with room for anything, which nobody reads.
class Sink final : public LogDevice {
 public:
  Result<void> write(BlockNo, ConstBytes) override { return {}; }
  Result<void> read(BlockNo, Bytes) override { return Error{EIO}; }
  Result<void> flush() override { return {}; }
};

class LostPages : public testing::Test {
 protected:
  void SetUp() override {
    FormatOptions options;
    options.data_blocks = 16384;
    options.meta_log = true;
    options.random_seed = 3;
    const auto plan = plan_format(region_->size(), pmem::MetaClass::kPersistent, options);
    ASSERT_TRUE(plan.ok()) << plan.error().message();
    ASSERT_TRUE(format(*region_, *plan, Timestamp{1, 0}).ok());
    geometry_ = *Geometry::from(*load_superblock(*region_, false));
  }
  std::vector<std::byte> content() const {
    return {region_->at(0), region_->at(0) + region_->size()};
  }

  std::unique_ptr<pmem::Region> region_ =
      pmem::make_memory_region(2 << 20, pmem::MetaClass::kPersistent);
  HurtRegion hurt_{*region_};
  Geometry geometry_;
};

TEST_F(LostPages, TheJournalIsNotTakenToBeEmpty) {
  const auto before = content();
  const auto recovered = recover_journal(hurt_, geometry_);
  ASSERT_FALSE(recovered.ok());
  EXPECT_EQ(recovered.error().code, EIO);
  EXPECT_EQ(content(), before);
  EXPECT_TRUE(recover_journal(*region_, geometry_).ok()) << "whole, it is empty";
}

TEST_F(LostPages, ACheckSaysSoAndRepairsNothing) {
  const uint64_t last = geometry_.heap_units() - 1;
  region_->store_word(geometry_.unit_offset(last), 1);  // a free unit that is not empty
  const auto before = content();
  const auto hurt = check(hurt_, geometry_.super(), {.repair = true});
  ASSERT_TRUE(hurt.ok());
  EXPECT_TRUE(std::ranges::none_of(hurt->problems, &CheckReport::Problem::repaired));
  EXPECT_TRUE(std::ranges::any_of(hurt->problems, [](const CheckReport::Problem& problem) {
    return problem.text.find("cannot be read") != std::string::npos;
  }));
  EXPECT_EQ(content(), before);
  const auto whole = check(*region_, geometry_.super(), {.repair = true});
  ASSERT_TRUE(whole.ok());
  EXPECT_FALSE(whole->problems.empty());
  EXPECT_TRUE(std::ranges::all_of(whole->problems, &CheckReport::Problem::repaired));
}

TEST_F(LostPages, NoSnapshotIsMadeOfThem) {
  Sink device;
  const DataLabel label = make_label(geometry_.super()).label;
  SnapshotHeader header{};
  header.generation = 2;
  const auto hurt = write_snapshot(hurt_, geometry_, label, header, device);
  ASSERT_FALSE(hurt.ok());
  EXPECT_EQ(hurt.error().code, EIO);
  const auto whole = write_snapshot(*region_, geometry_, label, header, device);
  EXPECT_TRUE(whole.ok()) << whole.error().message();
}

}  // namespace
}  // namespace streamfs::meta
