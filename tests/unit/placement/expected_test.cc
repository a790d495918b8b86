#include "fuse-fs/placement/expected.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/types.h"
#include "base/wire/model_table.h"
#include "fuse-fs/placement/lifetime.h"
#include "fuse-fs/placement/placement.h"
#include "tests/unit/placement/memory_store.h"

namespace streamfs::placement {
namespace {

constexpr uint64_t kBlocks = 1 << 16;

TEST(Expected, WordsAreSharesOfTheDevice) {
  EXPECT_EQ(pages_of_life(0, kBlocks), std::nullopt);
  EXPECT_EQ(pages_of_life(1, kBlocks), std::nullopt) << "none: no particular lifetime";
  EXPECT_EQ(pages_of_life(2, kBlocks), 1024);
  EXPECT_EQ(pages_of_life(5, kBlocks), 8 * kBlocks);
  EXPECT_EQ(pages_of_life(6, kBlocks), std::nullopt);
  EXPECT_EQ(pages_of_life(2, 1), 1) << "never none at all";
}

TEST(Expected, NamesSayBytesAndSecondsAndHints) {
  EXPECT_EQ(pages_of_name("rwh-medium", kBlocks, 0), pages_of_life(3, kBlocks));
  EXPECT_EQ(pages_of_name("life-64MiB", kBlocks, 0), 64 * 256);
  EXPECT_EQ(pages_of_name("life-1B", kBlocks, 0), 1);
  EXPECT_EQ(pages_of_name("life-256s", kBlocks, 2), 128'000);
  EXPECT_EQ(pages_of_name("life-256s", kBlocks, 0), std::nullopt) << "no rate is known";
  for (const char* name : {"", "mine", "life-", "life-x", "life-0s", "life-5", "life-5Mib",
                           "life-99999999999999999999s", "rwh-", "life--5s"}) {
    EXPECT_EQ(pages_of_name(name, kBlocks, 2), std::nullopt) << name;
  }
}

// Lifetimes are facts, hints are labels.
TEST(Expected, IsWhatCountsUntilEnoughHasDied) {
  const VStreamId v{7};
  LifetimeTable table(kBlocks);
  EXPECT_EQ(table.estimate_pages(table.seen(v)), std::nullopt);
  table.set_expected(v, 5000);
  EXPECT_EQ(table.estimate_pages(table.seen(v)), 5000);
  EXPECT_EQ(table.lifetime_pages(v), std::nullopt) << "it is not called measured";
  for (int i = 0; i < 200; ++i) table.born(BlockNo{0}, 16, v);
  ASSERT_TRUE(table.lifetime_pages(v));
  EXPECT_LT(*table.lifetime_pages(v), 100);
  EXPECT_EQ(table.estimate_pages(table.seen(v)), table.lifetime_pages(v));
}

TEST(Expected, WhatLivesLongerThanWasSaidIsBelieved) {
  const VStreamId said_short{7}, other{8};
  LifetimeTable table(kBlocks);
  table.set_expected(said_short, 10);
  table.born(BlockNo{0}, 32, said_short);
  for (uint64_t i = 0; i < kBlocks; i += 16) table.born(BlockNo{64 + i % 1024}, 16, other);
  EXPECT_GT(*table.estimate_pages(table.seen(said_short)), kBlocks / 4);
}

class ExpectedPlacement : public testing::Test {
 protected:
  void open() {
    Placement::Options options;
    options.pstream_count = 4;
    options.capacity_blocks = kBlocks;
    placement_ = std::move(Placement::open(store_, clock_, options)).value();
  }
  PStreamId pstream(const char* name, Source source) {
    const VStreamId v = *placement_->by_name(name, source);
    return placement_->route(v, 9, 0, wire::kAgeNew);
  }
  MemoryStore store_;
  ManualClock clock_;
  std::unique_ptr<Placement> placement_;
};

// Three vStreams have taken the three pStreams that nobody had; who comes later goes to its like.
TEST_F(ExpectedPlacement, FirstDataGoesToWhatIsExpectedToDieWithIt) {
  open();
  const PStreamId brief = pstream("rwh-short", Source::kHint);
  const PStreamId lasting = pstream("rwh-long", Source::kHint);
  pstream("rwh-extreme", Source::kHint);
  EXPECT_EQ(pstream("sqlite-journal", Source::kRule), brief);
  EXPECT_EQ(pstream("kafka-log", Source::kRule), lasting);
  EXPECT_EQ(pstream("life-4KiB", Source::kHint), brief);
  EXPECT_EQ(pstream("nobody-knows", Source::kHint), kDefaultPStream);
  const auto told = placement_->info(*placement_->by_name("sqlite-journal", Source::kRule));
  EXPECT_EQ(told->expected_bytes, kBlocks / 64 * kBlockSize);
  EXPECT_EQ(told->lifetime_bytes, 0U);
}

// A name that a mount finds, before anything was written.
TEST_F(ExpectedPlacement, SecondsAreUnderstoodOnceARateIsKnown) {
  open();
  pstream("life-4s", Source::kHint);
  open();
  const VStreamId v = *placement_->by_name("life-4s", Source::kHint);
  EXPECT_EQ(placement_->info(v)->expected_bytes, 0U);
  for (int second = 0; second < 4; ++second) {
    placement_->tick();
    placement_->wrote({kDefaultVStream, 256, 0, 256, BlockNo{0}}, kDefaultPStream, 0);
    clock_.ms += 1000;
  }
  placement_->tick();
  ASSERT_EQ(*placement_->by_name("life-4s", Source::kHint), v);
  EXPECT_EQ(placement_->info(v)->expected_bytes, 4U * 256 * kBlockSize);
}

TEST_F(ExpectedPlacement, WhatIsSaidHasALimit) {
  open();
  const VStreamId v = *placement_->by_name("life-18446744073709551615EiB", Source::kHint);
  EXPECT_EQ(placement_->info(v)->expected_bytes, uint64_t{1} << 62);
}

}  // namespace
}  // namespace streamfs::placement
