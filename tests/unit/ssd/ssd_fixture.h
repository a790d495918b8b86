// A small emulated SSD in a file that goes away with the test, and a model of what it should hold.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/ssd.h"
#include "ssd/stats.h"
#include "tests/support/temporary.h"

namespace streamfs::ssd {

inline GeometryRequest small_device(uint32_t streams = 4, bool plp = true,
                                    uint64_t size = 16 * kMiB) {
  GeometryRequest request;
  request.user_bytes = size;
  request.spare = 0.15;
  request.streams = streams;
  request.pages_per_block = 32;
  request.plp = plp;
  return request;
}

// Returns a number that only this FTL has.
inline uint64_t count_of(const SsdStats& stats, std::string_view name) {
  const auto found =
      std::ranges::find(stats.ftl_counts, name, [](const auto& each) { return each.first; });
  EXPECT_NE(found, stats.ftl_counts.end()) << name;
  return found == stats.ftl_counts.end() ? 0 : found->second;
}

class SsdTest : public ::testing::Test {
 protected:
  void create(const GeometryRequest& request) {
    Result<Geometry> geometry = plan_geometry(request);
    ASSERT_TRUE(geometry.ok()) << geometry.error().message();
    const Result<void> made = Image::create(path_, *geometry, true);
    ASSERT_TRUE(made.ok()) << made.error().message();
  }

  std::unique_ptr<Ssd> open(const SsdOptions& options = {}) {
    Result<std::unique_ptr<Ssd>> ssd = Ssd::open(path_, options);
    EXPECT_TRUE(ssd.ok()) << ssd.error().message();
    return ssd.ok() ? std::move(*ssd) : nullptr;
  }

  static void put(Ssd& ssd, uint64_t page, uint64_t pages, uint64_t version, uint16_t stream = 0) {
    const Result<void> done =
        ssd.write(page, content(page, pages, version), VStreamId{7}, PStreamId{stream});
    ASSERT_TRUE(done.ok()) << done.error().message();
  }

  static std::vector<std::byte> get(Ssd& ssd, uint64_t page, uint64_t pages) {
    std::vector<std::byte> bytes(pages * kBlockSize);
    EXPECT_TRUE(ssd.read(page, bytes).ok());
    return bytes;
  }

  // Random writes, trims and reads beside a model of versions; ends with a look at every page.
  void churn(Ssd& ssd, std::vector<uint64_t>& model, uint64_t seed, int operations) {
    std::mt19937_64 random(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    for (int i = 0; i < operations; ++i) {
      const uint64_t pages = 1 + random() % 40;
      const uint64_t page = random() % (model.size() - pages);
      const uint64_t version = random() % 10 == 0 ? 0 : ++version_;
      if (version == 0) {
        ASSERT_TRUE(ssd.trim(page, pages).ok());
      } else {
        put(ssd, page, pages, version, static_cast<uint16_t>(random() % 4));
      }
      std::fill_n(model.begin() + static_cast<ptrdiff_t>(page), pages, version);
      if (random() % 100 == 0) {
        ASSERT_TRUE(ssd.flush().ok());
      }
    }
    check(ssd, model);
  }

  static void check(Ssd& ssd, const std::vector<uint64_t>& model) {
    for (uint64_t page = 0; page < model.size(); ++page)
      ASSERT_TRUE(same_bytes(get(ssd, page, 1), content(page, 1, model[page]))) << "page " << page;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.file("ssd");
  uint64_t version_ = 0;
};

}  // namespace streamfs::ssd
