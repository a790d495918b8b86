// The log-block FTL: every page reads as written after every merge, each merge costs what it has
// to, and power may go anywhere.
#include "ssd/ftl/log_block.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ssd/counters.h"
#include "ssd/ftl/page_map.h"
#include "ssd/ftl/router.h"
#include "ssd/ftl/translation.h"
#include "ssd/geometry.h"
#include "ssd/media/null_media.h"
#include "ssd/victim/greedy.h"
#include "tests/unit/ssd/serial_device.h"

namespace streamfs::ssd {
namespace {

static_assert(Ftl<LogBlockFtl> && Ftl<PageMap<NullMedia, Greedy, StreamRouter>>);

struct LogBlockDevice : SerialHost {
  explicit LogBlockDevice(const Geometry& shape, uint32_t log_blocks = 0) : SerialHost(shape) {
    auto made = LogBlockFtl::make(shape, log_blocks, nand, counters);
    EXPECT_TRUE(made.ok());
    ftl = std::move(*made);
  }
  int put(Lpn page) { return write(*ftl, page); }
  void expect_kept() { expect_all(*ftl); }
  // The power comes back, on a controller that knows nothing; for so many operations.
  int restart(uint32_t log_blocks = 0, uint64_t operations = UINT64_MAX, uint64_t cut_seed = 0) {
    nand.power_on();
    nand.cut_after(operations, cut_seed);
    ftl = std::move(*LogBlockFtl::make(geometry, log_blocks, nand, counters));
    return ftl->recover();
  }
  uint64_t merged() const {
    const auto& merges = ftl->merges();
    return merges.switched + merges.partial + merges.full;
  }
  std::unique_ptr<LogBlockFtl> ftl;
};

TEST(LogBlock, AFirstFillLiesInPlaceAndCopiesNothing) {
  LogBlockDevice device(serial_geometry(64, 8, 12));
  for (Lpn page = 0; page < 64; ++page) ASSERT_EQ(device.put(page), 0);
  EXPECT_EQ(device.counters.gc_pages + device.counters.erases, 0u);
  // No log block is in use: each of the three takes a page of a block of its own.
  for (const Lpn page : {0u, 8u, 16u}) ASSERT_EQ(device.put(page), 0);
  EXPECT_EQ(device.merged(), 0u);
  ASSERT_EQ(device.put(24), 0);
  EXPECT_EQ(device.merged(), 1u);
  device.expect_kept();
}

TEST(LogBlock, ABlockOverwrittenInOrderIsSwitched) {
  LogBlockDevice device(serial_geometry(64, 8, 12));
  for (int round = 0; round < 3; ++round)
    for (Lpn page = 0; page < 64; ++page) ASSERT_EQ(device.put(page), 0);
  EXPECT_EQ(device.ftl->merges().switched, 16u);
  EXPECT_EQ(device.counters.gc_pages, 0u);
  EXPECT_EQ(device.counters.erases, 16u);
  device.expect_kept();
}

TEST(LogBlock, ABlockOverwrittenInOrderInPartGetsTheRest) {
  LogBlockDevice device(serial_geometry(64, 8, 10), 1);
  for (Lpn page = 0; page < 64; ++page) ASSERT_EQ(device.put(page), 0);
  for (Lpn page = 0; page < 3; ++page) ASSERT_EQ(device.put(page), 0);
  ASSERT_EQ(device.put(8), 0);  // takes the only log block
  EXPECT_EQ(device.ftl->merges().partial, 1u);
  EXPECT_EQ(device.counters.gc_pages, 5u);
  EXPECT_EQ(device.counters.erases, 1u);
  device.expect_kept();
}

TEST(LogBlock, ABlockOverwrittenAtRandomIsMergedWhole) {
  LogBlockDevice device(serial_geometry(64, 8, 10), 1);
  for (Lpn page = 0; page < 64; ++page) ASSERT_EQ(device.put(page), 0);
  for (const Lpn page : {5u, 2u, 5u}) ASSERT_EQ(device.put(page), 0);
  ASSERT_EQ(device.put(8), 0);
  EXPECT_EQ(device.ftl->merges().full, 1u);
  EXPECT_EQ(device.counters.gc_pages, 8u);
  EXPECT_EQ(device.counters.erases, 2u);
  device.expect_kept();
}

TEST(LogBlock, WhatWasNeverWrittenIsPaddedAndReadsAsNothing) {
  LogBlockDevice device(serial_geometry(64, 8, 10), 1);
  for (const Lpn page : {6u, 3u, 9u}) ASSERT_EQ(device.put(page), 0);
  EXPECT_EQ(device.counters.pad_pages, 5u);
  EXPECT_EQ(device.counters.gc_pages, 2u);
  device.expect_kept();
}

TEST(LogBlock, ATrimmedBlockGivesItsFlashBack) {
  LogBlockDevice device(serial_geometry(64, 8, 12));
  for (Lpn page = 0; page < 64; ++page) ASSERT_EQ(device.put(page), 0);
  ASSERT_EQ(device.put(3), 0);
  for (Lpn page = 0; page < 8; ++page) device.trim(*device.ftl, page);
  EXPECT_EQ(device.counters.erases, 2u);
  EXPECT_EQ(device.counters.trimmed_pages, 8u);
  device.expect_kept();
  for (Lpn page = 8; page < 16; page += 2) device.trim(*device.ftl, page);
  const uint64_t copied = device.counters.gc_pages;
  ASSERT_EQ(device.put(15), 0);
  for (const Lpn page : {16u, 24u, 32u}) ASSERT_EQ(device.put(page), 0);  // take its log block
  EXPECT_EQ(device.counters.gc_pages - copied, 4u) << "what is trimmed is not copied";
  device.expect_kept();
}

TEST(LogBlock, EveryPageReadsAsWrittenAfterEveryMerge) {
  for (const uint64_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    LogBlockDevice device(serial_geometry(250, 8, 40),
                          seed == 1 ? 1 : 0);  // the last block is a part
    std::mt19937_64 random(seed);
    uint64_t merged = 0;
    Lpn next = 0;
    for (int i = 0; i < 20'000; ++i) {
      const uint64_t what = random() % 16;
      if (what == 0) next = static_cast<Lpn>(random() % 250);
      if (what == 1) device.trim(*device.ftl, static_cast<Lpn>(random() % 250));
      const Lpn page = what < 11 ? next++ % 250 : static_cast<Lpn>(random() % 250);
      ASSERT_EQ(device.put(page), 0);
      if (device.merged() == merged) continue;
      merged = device.merged();
      device.expect_kept();
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "write " << i;
    }
    EXPECT_GT(device.ftl->merges().switched, 50u);
    EXPECT_GT(device.ftl->merges().partial, 50u);
    EXPECT_GT(device.ftl->merges().full, 50u);
    EXPECT_EQ(device.nand.operations().programs,
              device.counters.host_pages + device.counters.gc_pages + device.counters.pad_pages);
  }
}

// A cut falls on any program or erase, in recovery too. A trim that was not made good by an erase
// may be forgotten; nothing else may.
TEST(LogBlock, EveryCutLeavesWhatWasAcknowledged) {
  int cut_again = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const uint32_t logs = seed % 2 == 0 ? 1 : 0;
    LogBlockDevice device(serial_geometry(60, 4, logs == 1 ? 17 : 20), logs);
    std::mt19937_64 random(seed);
    std::vector<uint64_t> trimmed(60);  // the content of trimmed pages
    Lpn next = 0;
    for (int cut = 0; cut < 25; ++cut) {
      device.nand.cut_after(random() % 40, random());
      int error = 0;
      while (error == 0) {
        if (random() % 4 == 0) next = static_cast<Lpn>(random() % 60);
        if (random() % 8 == 0) {
          const auto first = static_cast<Lpn>(random() % 15 * 4);
          for (Lpn page = first; page < first + 4; ++page) {
            if (device.holds[page] != 0) trimmed[page] = device.holds[page];
            device.trim(*device.ftl, page);
            device.holds[page] = 0;  // or not, if the power went
          }
        }
        error = device.put(random() % 3 == 0 ? static_cast<Lpn>(random() % 60) : next++ % 60);
      }
      ASSERT_EQ(error, EIO);
      for (int i = 0; i < 3 && device.restart(logs, random() % 6, random()) != 0; ++i) ++cut_again;
      ASSERT_EQ(device.restart(logs), 0);
      for (Lpn page = 0; page < 60; ++page) {
        const uint64_t found = device.read(*device.ftl, page);
        const bool tried = page == device.tried && found == device.versions;
        const bool again = device.holds[page] == 0 && found == trimmed[page];
        if (tried || again) device.holds[page] = found;
        ASSERT_EQ(found, device.holds[page]) << "page " << page << ", cut " << cut;
      }
    }
  }
  EXPECT_GT(cut_again, 100);
}

TEST(LogBlock, TheScanGrowsWithTheDevice) {
  uint64_t before = 0;
  for (const uint32_t blocks : {32u, 64u, 128u}) {
    LogBlockDevice device(serial_geometry(blocks * 8, 8, blocks + 5));
    for (Lpn page = 0; page < blocks * 8; ++page) ASSERT_EQ(device.put(page), 0);
    const uint64_t reads = device.nand.operations().spare_reads;
    ASSERT_EQ(device.restart(), 0);
    const uint64_t scanned = device.nand.operations().spare_reads - reads;
    EXPECT_GE(scanned, 2 * blocks);
    if (before != 0) {
      EXPECT_NEAR(static_cast<double>(scanned), 2.0 * static_cast<double>(before), 20);
    }
    before = scanned;
  }
}

TEST(LogBlock, ASpareThatHoldsNoMergeIsRefused) {
  Counters counters;
  const Geometry geometry = serial_geometry(64, 8, 9);
  SerialNand nand(geometry, 8, {});
  const auto made = LogBlockFtl::make(geometry, 0, nand, counters);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, EINVAL);
  EXPECT_NE(made.error().context.find("8 of 9 blocks"), std::string::npos);
  const Geometry more = serial_geometry(64, 8, 12);
  EXPECT_EQ(LogBlockFtl::make(more, 4, nand, counters).error().code, EINVAL);
  EXPECT_TRUE(LogBlockFtl::make(more, 3, nand, counters).ok());
}

}  // namespace
}  // namespace streamfs::ssd
