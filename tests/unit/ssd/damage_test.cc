// Flash that forgets: data that is not what was programmed is an error, never an answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <ios>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "ssd/ftl/hybrid_layout.h"
#include "ssd/geometry.h"
#include "ssd/layout.h"
#include "ssd/presets.h"
#include "ssd/ssd.h"
#include "tests/unit/ssd/ssd_fixture.h"

namespace streamfs::ssd {
namespace {

class Damage : public SsdTest {
 protected:
  // Changes a byte in the middle of every copy of this page that the image holds.
  void flip(uint64_t page, uint64_t version) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    const std::string image((std::istreambuf_iterator<char>(file)), {});
    const std::vector<std::byte> bytes = content(page, 1, version);
    const std::string_view wanted(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    file.clear();  // the end was reached
    size_t found = 0;
    for (size_t at = image.find(wanted); at != std::string::npos; at = image.find(wanted, at + 1)) {
      file.seekp(static_cast<std::streamoff>(at + 1234));
      file.put(static_cast<char>(~image[at + 1234]));
      ++found;
    }
    ASSERT_GT(found, 0u);
  }
  // Inverts a byte of the image.
  void invert(uint64_t offset) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const int before = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(~before));
    ASSERT_TRUE(file.good());
  }
  // Makes a device with 256 pages in order, from the first page of the flash on.
  Geometry create_on_nand(FtlKind ftl) {
    GeometryRequest request = nand_request(ftl);
    request.user_bytes = 512 * kPageBytes;
    request.pages_per_block = 32;
    request.blocks = 22;
    create(request);
    put(*open(), 0, 256, 1);
    return *plan_geometry(request);
  }
  static uint64_t spare_of(const Geometry& geometry, Ppn at) {
    return image_offsets(geometry).spare + at * sizeof(SpareEntry) + offsetof(SpareEntry, lpn);
  }
  // Overwrites all but the damaged pages until each block was collected or merged.
  static void overwrite_around(Ssd& ssd, std::initializer_list<uint64_t> damaged) {
    std::mt19937_64 random(1);
    for (uint64_t i = 0; i < 3000; ++i) {
      const uint64_t page = i < 512 ? i : random() % 512;
      if (std::ranges::find(damaged, page) == damaged.end()) put(ssd, page, 1, 2);
    }
    ASSERT_GT(ssd.stats().gc_bytes, 0u);
  }
  static void expect_damaged(Ssd& ssd, std::initializer_list<uint64_t> damaged, uint64_t version) {
    for (uint64_t page = 0; page < 256; ++page) {
      const bool bad = std::ranges::find(damaged, page) != damaged.end();
      ASSERT_EQ(read_error(ssd, page), bad ? EIO : 0) << page;
      if (!bad) {
        ASSERT_TRUE(same_bytes(get(ssd, page, 1), content(page, 1, version))) << page;
      }
    }
  }
  static int read_error(Ssd& ssd, uint64_t page, uint64_t pages = 1) {
    std::vector<std::byte> bytes(pages * kBlockSize);
    const auto done = ssd.read(page, bytes);
    return done.ok() ? 0 : done.error().code;
  }
};

TEST_F(Damage, OneFlippedByteIsAnErrorOfThatPageAlone) {
  create(small_device());
  put(*open(), 0, 256, 1);
  flip(40, 1);
  const auto ssd = open();
  for (uint64_t page = 0; page < 256; ++page) {
    ASSERT_EQ(read_error(*ssd, page), page == 40 ? EIO : 0) << page;
    if (page != 40) {
      ASSERT_TRUE(same_bytes(get(*ssd, page, 1), content(page, 1, 1)));
    }
  }
  EXPECT_EQ(read_error(*ssd, 32, 16), EIO);
  EXPECT_EQ(read_error(*ssd, 41, 16), 0);
  EXPECT_EQ(ssd->stats().media_errors, 2u);
  put(*ssd, 40, 1, 2);
  EXPECT_EQ(get(*ssd, 40, 1), content(40, 1, 2));
}

TEST_F(Damage, AMessageNamesThePages) {
  create(small_device());
  const auto ssd = open();
  put(*ssd, 0, 64, 1);
  flip(7, 1);
  std::vector<std::byte> bytes(kBlockSize);
  const auto done = ssd->read(7, bytes);
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().context.find("1 page(s) from 7 on"), std::string::npos);
}

TEST_F(Damage, AMapUnitIsDamagedAsAWholeAndNoPartialWriteHidesIt) {
  GeometryRequest request = small_device();
  request.map_unit_bytes = 4 * kPageBytes;
  create(request);
  put(*open(), 0, 256, 1);
  flip(41, 1);
  const auto ssd = open();
  for (uint64_t page = 36; page < 48; ++page)
    EXPECT_EQ(read_error(*ssd, page), page / 4 == 10 ? EIO : 0) << page;
  const auto written = ssd->write(42, content(42, 1, 2), {}, {});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, EIO);
  EXPECT_EQ(read_error(*ssd, 41), EIO);
  EXPECT_EQ(get(*ssd, 37, 6 - 3), content(37, 3, 1));
  put(*ssd, 40, 4, 3);
  EXPECT_EQ(get(*ssd, 40, 4), content(40, 4, 3));
}

TEST_F(Damage, GarbageCollectionDoesNotPassDamageOffAsData) {
  create(small_device(1));
  const auto ssd = open();
  put(*ssd, 0, 4096, 1);
  flip(40, 1);
  for (uint64_t i = 0; i < 40'000; ++i) {
    const uint64_t page = i * 31 % 4096;
    if (page != 40) put(*ssd, page, 1, 2);
  }
  ASSERT_GT(ssd->stats().gc_bytes, 0u);
  EXPECT_EQ(read_error(*ssd, 40), EIO);
  EXPECT_EQ(get(*ssd, 41, 1), content(41, 1, 2));
}

class NandDamage : public Damage, public ::testing::WithParamInterface<FtlKind> {};
INSTANTIATE_TEST_SUITE_P(Ftl, NandDamage, ::testing::Values(FtlKind::kHybrid, FtlKind::kLogBlock));

TEST_P(NandDamage, AFlippedByteIsAnErrorOfThatPageAlsoAfterItWasCopied) {
  create_on_nand(GetParam());
  flip(31, 1);  // the last page of a block
  flip(40, 1);
  const auto ssd = open();
  expect_damaged(*ssd, {31, 40}, 1);
  EXPECT_EQ(ssd->stats().media_errors, 2u);
  overwrite_around(*ssd, {31, 40});
  expect_damaged(*ssd, {31, 40}, 2);
  put(*ssd, 31, 1, 2);
  expect_damaged(*ssd, {40}, 2);
}

TEST_P(NandDamage, ADamagedSpareAreaIsAnErrorOfItsPageAlsoAfterItWasCopied) {
  const Geometry geometry = create_on_nand(GetParam());
  invert(spare_of(geometry, 40));
  const auto ssd = open();
  expect_damaged(*ssd, {40}, 1);
  overwrite_around(*ssd, {40});
  expect_damaged(*ssd, {40}, 2);
  put(*ssd, 40, 1, 2);
  expect_damaged(*ssd, {}, 2);
}

TEST_F(Damage, TheLogBlockFtlDoesNotGuessWhereABlockEnds) {
  const Geometry geometry = create_on_nand(FtlKind::kLogBlock);
  for (const Ppn at : {0U, 31U}) {
    invert(spare_of(geometry, at));
    const auto refused = Ssd::open(path_, {});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, EIO);
    EXPECT_NE(refused.error().context.find("spare areas that no power cut explains"),
              std::string::npos);
    invert(spare_of(geometry, at));
  }
  expect_damaged(*open(), {}, 1);
}

TEST_F(Damage, OfTheHybridsMemoryIsAnError) {
  const Geometry geometry = create_on_nand(FtlKind::kHybrid);
  const uint64_t memory = image_offsets(geometry).memory;
  const HybridLayout layout(geometry);
  invert(memory + layout.map(5) + 3);
  {
    const auto ssd = open();
    expect_damaged(*ssd, {5}, 1);
    EXPECT_EQ(ssd->write(5, content(5, 1, 2), {}, {}).error().code, EIO);
    ASSERT_TRUE(ssd->trim(5, 1).ok());
    expect_damaged(*ssd, {5}, 1);
  }
  invert(memory + layout.map(5) + 3);
  expect_damaged(*open(), {}, 1);
  invert(memory + HybridLayout::never_used() + 3);
  EXPECT_EQ(Ssd::open(path_, {}).error().code, EIO);
  invert(memory + HybridLayout::never_used() + 3);
  invert(memory);
  EXPECT_EQ(Ssd::open(path_, {}).error().code, EINVAL);
  invert(memory);
  expect_damaged(*open(), {}, 1);
}

}  // namespace
}  // namespace streamfs::ssd
