// Growing a META that has an intent log: the log's share of the new room.
#include <gtest/gtest.h>

#include <cstdint>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/growth.h"
#include "tests/unit/meta/growth_plans.h"

namespace streamfs::meta {
namespace {

Superblock with_intent_log(uint64_t meta_bytes, uint64_t log_bytes) {
  FormatOptions options;
  options.data_blocks = 1 << 16;
  options.intent_log_bytes = log_bytes;
  return plan_format(meta_bytes, pmem::MetaClass::kPersistent, options).value();
}

Superblock grown_to(const Superblock& now, uint64_t meta_bytes, uint64_t planned_meta = 0) {
  GrowthRequest request = of_a_file(now, now.data_blocks);
  request.wanted_meta = meta_bytes;
  request.planned_meta = planned_meta;
  const Result<Superblock> next = plan_growth(now, request);
  EXPECT_TRUE(next.ok()) << next.error().message();
  return next.ok() ? *next : now;
}

TEST(PlanIntentGrowth, TheIntentLogGetsASixteenthOfTheNewRoom) {
  const Superblock now = with_intent_log(64 * kMiB, 8 * kMiB);
  const Superblock next = grown_to(now, 192 * kMiB);
  EXPECT_EQ(intent_log_bytes(next), 16 * kMiB);
  expect_nothing_moved(now, next);
  EXPECT_EQ(intent_log_bytes(grown_to(planned(1 << 18), 1024 * kMiB)), 0U) << "it has no log";
}

TEST(PlanIntentGrowth, TheIntentLogTakesItsShareOfUnevenGrowths) {
  Superblock now = with_intent_log(16 * kMiB, kRingSize);
  for (const uint64_t mib : {20U, 25U, 40U}) now = grown_to(now, mib * kMiB);
  EXPECT_EQ(intent_log_bytes(now), kRingSize + 3 * kRingSize) << "of 24 MiB";
}

// Small shares are not worth a segment, and the heap never lacks one for the sake of the log.
TEST(PlanIntentGrowth, TheIntentLogNeverKeepsMetaFromGrowing) {
  Superblock now = with_intent_log(64 * kMiB, 8 * kMiB);
  EXPECT_EQ(intent_log_bytes(grown_to(now, 72 * kMiB)), 8 * kMiB);
  const uint64_t planned = 8192 * kMiB;
  for (int growth = 0; growth < 20; ++growth)
    now = grown_to(now, now.meta_size + now.meta_size / 4, planned);
  EXPECT_GT(intent_log_bytes(now), 12 * kMiB);
  EXPECT_LE(segments_of(now, RegionKind::kHeap), kMaxSegments - 2);
  for (int growth = 0; growth < 2; ++growth) {
    const Result<Superblock> next = plan_growth(now, of_a_file(now, now.data_blocks * 64));
    ASSERT_TRUE(next.ok()) << next.error().message();
    now = *next;
  }
}

TEST(PlanIntentGrowth, AMetaThatGrowsWithDataKeepsItsFilesAndItsIntentLog) {
  FormatOptions options;
  options.data_blocks = 1 << 20;
  options.intent_log_bytes = 8 * kMiB;
  const Superblock now =
      plan_format(first_meta_size(options), pmem::MetaClass::kPersistent, options).value();
  const Superblock next = plan_growth(now, of_a_file(now, 5 << 20)).value();
  EXPECT_GT(intent_log_bytes(next), intent_log_bytes(now));
  EXPECT_GE(files_per_block(next), files_per_block(now) * 0.99);
}

}  // namespace
}  // namespace streamfs::meta
