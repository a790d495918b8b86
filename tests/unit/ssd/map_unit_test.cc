// Map units larger than a page: content, and what read-modify-write costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "base/types.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/presets.h"
#include "ssd/ssd.h"
#include "tests/unit/ssd/ssd_fixture.h"

namespace streamfs::ssd {
namespace {

GeometryRequest mapped_by(uint64_t unit_bytes, bool plp = true) {
  GeometryRequest request = small_device(4, plp);
  request.map_unit_bytes = unit_bytes;
  return request;
}

using MapUnit = SsdTest;

TEST_F(MapUnit, ContentSurvivesWhateverTheUnit) {
  for (const uint64_t kib : {8U, 16U, 32U, 64U}) {
    for (const bool plp : {true, false}) {
      SCOPED_TRACE(kib);
      create(mapped_by(kib << 10, plp));
      std::vector<uint64_t> model(4096);
      auto ssd = open();
      std::mt19937_64 random(kib);
      for (int i = 0; i < 1500; ++i) {
        const uint64_t pages = 1 + random() % 40, page = random() % (model.size() - pages);
        put(*ssd, page, pages, ++version_, static_cast<uint16_t>(random() % 4));
        std::fill_n(model.begin() + static_cast<ptrdiff_t>(page), pages, version_);
      }
      check(*ssd, model);
      EXPECT_GT(ssd->stats().gc_bytes, 0u);
      ASSERT_TRUE(ssd->flush().ok());
      ssd.reset();
      check(*open(), model);
    }
  }
}

TEST_F(MapUnit, AWriteOfAPartReadsAndProgramsTheRest) {
  create(mapped_by(16 << 10));
  const auto ssd = open();
  put(*ssd, 1, 1, 1);  // nothing there: zeroes are programmed beside it, nothing is read
  EXPECT_EQ(ssd->stats().written_bytes, 1 * kPageBytes);
  EXPECT_EQ(ssd->stats().rmw_bytes, 3 * kPageBytes);
  EXPECT_EQ(ssd->stats().rmw_read_bytes, 0u);
  put(*ssd, 2, 1, 2);
  EXPECT_EQ(ssd->stats().rmw_read_bytes, 3 * kPageBytes);
  EXPECT_EQ(ssd->stats().nand_bytes, 8 * kPageBytes);
  EXPECT_DOUBLE_EQ(ssd->stats().waf().value(), 4);
  EXPECT_EQ(ssd->stats().live_bytes, 4 * kPageBytes);
  put(*ssd, 6, 8, 3, 2);  // a half, a whole, a half
  EXPECT_EQ(ssd->stats().written_bytes, 10 * kPageBytes);
  EXPECT_EQ(ssd->stats().rmw_bytes, 10 * kPageBytes);
  EXPECT_EQ(ssd->stats().streams[2].written_bytes, 8 * kPageBytes);
  EXPECT_EQ(get(*ssd, 1, 1), content(1, 1, 1));
  EXPECT_EQ(get(*ssd, 2, 1), content(2, 1, 2));
  EXPECT_EQ(get(*ssd, 6, 8), content(6, 8, 3));
  EXPECT_EQ(get(*ssd, 3, 3), content(3, 3, 0));
}

TEST_F(MapUnit, WholeUnitsCostNothingMore) {
  create(mapped_by(64 << 10));
  const auto ssd = open();
  put(*ssd, 32, 64, 1);
  EXPECT_EQ(ssd->stats().rmw_bytes, 0u);
  EXPECT_DOUBLE_EQ(ssd->stats().waf().value(), 1);
}

TEST_F(MapUnit, ATrimOfAPartFreesNothing) {
  create(mapped_by(16 << 10));
  const auto ssd = open();
  put(*ssd, 0, 16, 1);
  ASSERT_TRUE(ssd->trim(1, 6).ok());  // the rest of unit 0 and most of unit 1
  EXPECT_EQ(ssd->stats().trimmed_bytes, 0u);
  EXPECT_EQ(get(*ssd, 0, 16), content(0, 16, 1));
  ASSERT_TRUE(ssd->trim(1, 9).ok());  // unit 1 lies inside
  EXPECT_EQ(ssd->stats().trimmed_bytes, 4 * kPageBytes);
  EXPECT_EQ(get(*ssd, 4, 4), content(4, 4, 0));
  EXPECT_EQ(get(*ssd, 1, 3), content(1, 3, 1));
  EXPECT_EQ(get(*ssd, 8, 8), content(8, 8, 1));
}

TEST_F(MapUnit, TheWordlineOfTheShapeIsWhatAFlushPads) {
  GeometryRequest request = *find_preset("consumer-tlc");
  ASSERT_TRUE(scale_down(request, "1/256").ok());
  request.user_bytes = 1 << 30;
  create(request);
  const auto ssd = open();
  put(*ssd, 0, 1, 1);
  ASSERT_TRUE(ssd->flush().ok());
  EXPECT_EQ(ssd->stats().pad_bytes, 47 * kPageBytes);  // 4 planes × 3 bits × 16 KiB
  EXPECT_EQ(get(*ssd, 0, 1), content(0, 1, 1));
}

TEST_F(MapUnit, AnImageOfAnotherVersionIsRefusedByItsVersion) {
  create(small_device());
  FILE* file = fopen(path_.c_str(), "r+");
  fseek(file, 8, SEEK_SET);
  fputc(1, file);
  fclose(file);
  const auto refused = Ssd::open(path_, {});
  EXPECT_EQ(refused.error().code, EINVAL);
  EXPECT_NE(refused.error().context.find("image version 1"), std::string::npos);
}

}  // namespace
}  // namespace streamfs::ssd
