// The write cache with an intent log: which blocks are logged, and which a round writes out.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/intent_log.h"
#include "tests/unit/data/write_cache_rig.h"

namespace streamfs::data::write_cache_test {
namespace {

// With an intent log in a META of its own.
struct Logged : Buffered {
  static constexpr uint64_t kMetaBytes = 4 << 20;
  Logged() {
    meta::FormatOptions options;
    options.data_blocks = 4096;
    options.intent_log_bytes = 1 << 20;
    const auto super = meta::plan_format(kMetaBytes, pmem::MetaClass::kPersistent, options).value();
    EXPECT_TRUE(meta::format(*region, super, {}).ok());
    geometry = meta::Geometry::from(super).value();
    log = meta::IntentLog::open(*region, geometry).value();
    log->start();
    cache.serve_intent_log();
  }
  std::vector<BlockNo> log_all(bool keep = true) {
    const uint64_t blocks = cache.unlogged(kOwner);
    const auto batch = log->begin(blocks);
    auto done = cache.log(kOwner, blocks, *batch);
    region->fence(batch->flushed());
    if (keep) batch->keep();
    if (!keep) cache.not_logged(done);
    return done;
  }
  std::unique_ptr<pmem::Region> region =
      pmem::make_memory_region(kMetaBytes, pmem::MetaClass::kPersistent);
  meta::Geometry geometry;
  std::unique_ptr<meta::IntentLog> log;
};

TEST(WriteCacheLog, WhatIsFreedInACutIsWrittenOut) {
  Logged one;
  ASSERT_TRUE(one.put(10, 1, 3));
  ASSERT_EQ(one.log_all().size(), 3);
  one.cache.discard(BlockNo{10}, 1);  // before the cut: absorbed
  {
    const WriteCache::Cut cut(one.cache);
    one.cache.discard(BlockNo{11}, 1);
    ASSERT_TRUE(one.cache.write_out().ok());
    ASSERT_TRUE(one.put(13, 4));
    ASSERT_EQ(one.log_all().size(), 1);
    one.cache.discard(BlockNo{13}, 1);  // of no round yet
    EXPECT_EQ(one.seen(13, 1), Values{4});
  }
  EXPECT_EQ(one.there(10, 4), (Values{0, 1, 1, 0}));
  EXPECT_EQ(one.cache.counts().absorbed_blocks, 2);
  ASSERT_TRUE(one.cache.write_out().ok());
  EXPECT_EQ(one.there(13, 1), Values{0});
}

TEST(WriteCacheLog, ALoggedBlockIsNeverReplaced) {
  Logged one;
  ASSERT_TRUE(one.put(10, 1, 2));
  EXPECT_TRUE(one.cache.holds(BlockNo{10}, 2));
  ASSERT_EQ(one.log_all().size(), 2);
  EXPECT_EQ(one.cache.unlogged(kOwner), 0);
  EXPECT_FALSE(one.cache.holds(BlockNo{10}, 1));
  EXPECT_FALSE(one.put(10, 3, 1, false));
  EXPECT_EQ(one.seen(10, 2), (Values{1, 1}));
}

TEST(WriteCacheLog, WhatWasNotKeptIsLoggedAgain) {
  Logged one;
  ASSERT_TRUE(one.put(10, 1, 2));
  ASSERT_EQ(one.log_all(false).size(), 2);
  EXPECT_EQ(one.cache.unlogged(kOwner), 2);
  EXPECT_TRUE(one.cache.holds(BlockNo{10}, 2));
  EXPECT_EQ(one.log_all().size(), 2);
}

TEST(WriteCacheLog, WhatIsWrittenOutCanBeLoggedUntilAFlushCoversIt) {
  Logged one;
  ASSERT_TRUE(one.put(10, 1, 2));
  ASSERT_TRUE(one.cache.write_out().ok());
  const uint64_t first = one.cache.written_out();
  ASSERT_TRUE(one.put(20, 2));
  EXPECT_EQ(one.cache.unlogged(kOwner), 3);
  ASSERT_TRUE(one.cache.write_out().ok());
  one.cache.flushed({}, first);  // the second write-out may have come after this flush began
  EXPECT_EQ(one.cache.unlogged(kOwner), 1);
  EXPECT_EQ(one.log_all(), std::vector{BlockNo{20}});
  one.cache.flushed({}, one.cache.written_out());
  EXPECT_TRUE(one.cache.nothing());
  EXPECT_EQ(one.seen(20, 1), Values{2});
}

}  // namespace
}  // namespace streamfs::data::write_cache_test
