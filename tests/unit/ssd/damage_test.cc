// Flash that forgets: data that is not what was programmed is an error, never an answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ios>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "ssd/geometry.h"
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

}  // namespace
}  // namespace streamfs::ssd
