// The vStream-FTL as a firmware: separation by vStream, restarts, statistics, refused geometries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/layout.h"
#include "ssd/ssd.h"
#include "ssd/stats.h"
#include "tests/unit/ssd/cut_nand.h"
#include "tests/unit/ssd/ssd_fixture.h"

namespace streamfs::ssd {
namespace {

constexpr uint64_t kAllPages = 4096, kHotPages = 512, kRun = 8;
constexpr VStreamId kHot{1}, kCold{65'534};

GeometryRequest vstream_device() {
  GeometryRequest request = small_device(2);
  request.ftl = FtlKind::kVStream;
  return request;
}

class VStreamFirmwareTest : public SsdTest {
 protected:
  // Nine of ten writes go to the hot pages.
  void write_some(Ssd& ssd, int writes) {
    for (int i = 0; i < writes; ++i) {
      const bool hot = random_() % 10 != 0;
      const uint64_t runs = (hot ? kHotPages : kAllPages - kHotPages) / kRun;
      const uint64_t page = (hot ? 0 : kHotPages) + random_() % runs * kRun;
      ASSERT_TRUE(ssd.write(page, content(page, kRun, ++version_), hot ? kHot : kCold, {}).ok());
      std::fill_n(model_.begin() + static_cast<ptrdiff_t>(page), kRun, version_);
    }
  }
  void fill(Ssd& ssd) {
    for (uint64_t page = 0; page < kAllPages; page += kRun) {
      const VStreamId vstream = page < kHotPages ? kHot : kCold;
      ASSERT_TRUE(ssd.write(page, content(page, kRun, 1), vstream, {}).ok());
    }
    std::ranges::fill(model_, 1);
    version_ = 1;
  }
  // Returns the stream to which writes of the vStream go.
  size_t stream_of_writes(Ssd& ssd, VStreamId vstream) {
    const SsdStats before = ssd.stats();
    const uint64_t page = vstream == kHot ? 0 : kHotPages;
    EXPECT_TRUE(ssd.write(page, content(page, kRun, ++version_), vstream, {}).ok());
    std::fill_n(model_.begin() + static_cast<ptrdiff_t>(page), kRun, version_);
    const SsdStats after = ssd.stats();
    for (size_t i = 0; i < after.streams.size(); ++i)
      if (after.streams[i].written_bytes > before.streams[i].written_bytes) return i;
    return SIZE_MAX;
  }
  uint64_t copied(const GeometryRequest& request) {
    create(request);
    const auto ssd = open();
    fill(*ssd);
    write_some(*ssd, 8000);
    ssd->reset_stats();
    write_some(*ssd, 8000);
    check(*ssd, model_);
    return ssd->stats().gc_bytes;
  }

  std::mt19937_64 random_{1};
  std::vector<uint64_t> model_ = std::vector<uint64_t>(kAllPages);
};

TEST_F(VStreamFirmwareTest, SeparatesVStreamsThatTheHostOnlyNames) {
  GeometryRequest page_map = vstream_device();
  page_map.ftl = FtlKind::kPageMap;
  const uint64_t mixed = copied(page_map), separated = copied(vstream_device());
  EXPECT_LT(static_cast<double>(separated), .8 * static_cast<double>(mixed));
}

TEST_F(VStreamFirmwareTest, AVStreamKeepsItsStreamOverARestart) {
  create(vstream_device());
  auto ssd = open();
  fill(*ssd);
  write_some(*ssd, 4000);
  const size_t hot = stream_of_writes(*ssd, kHot), cold = stream_of_writes(*ssd, kCold);
  EXPECT_NE(hot, cold);
  ssd.reset();
  ssd = open();
  EXPECT_EQ(count_of(ssd->stats(), "live_vstreams"), 2u);
  EXPECT_EQ(stream_of_writes(*ssd, kHot), hot);
  EXPECT_EQ(stream_of_writes(*ssd, kCold), cold);
  write_some(*ssd, 4000);
  EXPECT_EQ(stream_of_writes(*ssd, kHot), hot);
  check(*ssd, model_);
}

// Some hot data was written before the hot vStream had its stream, and is copied after each hot
// write, because it shares blocks with the copies of cold data.
TEST_F(VStreamFirmwareTest, ACopyTakesNoVStreamBackToAnEarlierStream) {
  GeometryRequest request = vstream_device();
  request.gc_mode = GcMode::kShared;
  create(request);
  auto ssd = open();
  fill(*ssd);
  const auto cold_page = [&] { return kHotPages + random_() % (kAllPages - kHotPages) / 2 * 2; };
  for (int i = 0; i < 512; ++i) {
    const bool hot_page = i % 8 == 0;
    const uint64_t page = hot_page ? cold_page() : cold_page() + 1;
    ASSERT_TRUE(ssd->write(page, content(0, 1, 1), hot_page ? kHot : kCold, {}).ok());
  }
  for (int i = 0; i < 4000; ++i) {
    const uint64_t page = random_() % kHotPages;
    ASSERT_TRUE(ssd->write(page, content(page, 1, 1), kHot, {}).ok());
  }
  const size_t hot = stream_of_writes(*ssd, kHot);
  ASSERT_NE(hot, 0u);
  for (int restart = 0; restart < 20; ++restart) {
    for (int i = 0; i < 1000; ++i)
      ASSERT_TRUE(ssd->write(cold_page() + 1, content(0, 1, 1), kCold, {}).ok());
    ssd.reset();
    ssd = open();
    ASSERT_EQ(stream_of_writes(*ssd, kHot), hot) << "restart " << restart;
  }
}

TEST_F(VStreamFirmwareTest, ACopyGoesToItsVStreamsStreamOrWithAllOthers) {
  for (const GcMode mode : {GcMode::kOwnFrontier, GcMode::kShared}) {
    GeometryRequest request = vstream_device();
    request.gc_mode = mode;
    create(request);
    auto ssd = open();
    fill(*ssd);
    write_some(*ssd, 8000);
    EXPECT_GT(ssd->stats().gc_bytes, 0u);
    const size_t hot = stream_of_writes(*ssd, kHot);
    ASSERT_NE(hot, 0u);
    ssd.reset();
    const auto image = std::move(*Image::open(path_, Image::Access::kHold, 0));
    const auto copies_of_hot =
        std::ranges::count(image->blocks(), request.streams + hot, &BlockRecord::frontier);
    EXPECT_EQ(copies_of_hot > 0, mode == GcMode::kOwnFrontier);
  }
}

TEST_F(VStreamFirmwareTest, CountsItsRemapsAndTheVStreamsThatLive) {
  create(vstream_device());
  const auto ssd = open();
  EXPECT_EQ(count_of(ssd->stats(), "live_vstreams"), 0u);
  fill(*ssd);
  write_some(*ssd, 100);
  EXPECT_EQ(count_of(ssd->stats(), "live_vstreams"), 2u);
  const uint64_t remaps = count_of(ssd->stats(), "remaps");
  write_some(*ssd, static_cast<int>(kAllPages / kRun));
  EXPECT_EQ(count_of(ssd->stats(), "remaps"), remaps + 64);  // 64 in each capacity written
  ASSERT_TRUE(ssd->trim(0, kHotPages).ok());
  std::fill_n(model_.begin(), kHotPages, 0);
  for (uint64_t page = kHotPages; page < 2 * kHotPages; page += kRun)
    ASSERT_TRUE(ssd->write(page, content(page, kRun, 1), kCold, {}).ok());
  EXPECT_EQ(count_of(ssd->stats(), "live_vstreams"), 1u);
}

TEST_F(VStreamFirmwareTest, WithStreamsOffAllWritesAreOfOneVStream) {
  create(vstream_device());
  const auto ssd = open({.streams_off = true});
  fill(*ssd);
  write_some(*ssd, 4000);
  EXPECT_EQ(count_of(ssd->stats(), "live_vstreams"), 1u);
  EXPECT_EQ(stream_of_writes(*ssd, kHot), stream_of_writes(*ssd, kCold));
  check(*ssd, model_);
}

// The power goes in the middle of superpages, and blocks are left half full.
TEST_F(VStreamFirmwareTest, SharedCopiesAndRestartsKeepTheData) {
  GeometryRequest request = vstream_device();
  request.gc_mode = GcMode::kShared;
  create(request);
  CutNand nand(1, 32, false);
  auto ssd = open({.faults = &nand});
  fill(*ssd);
  for (int cut = 0; cut < 20 && !HasFailure(); ++cut) {
    write_some(*ssd, 200);
    nand.cut_after(0);
    EXPECT_EQ(ssd->write(0, content(0, 1, version_ + 1), kHot, {}).error().code, EIO);
    nand.never();
    ssd.reset();
    ssd = open({.faults = &nand});
  }
  check(*ssd, model_);
}

TEST_F(VStreamFirmwareTest, ADeviceThatThePaperDoesNotKnowIsRefused) {
  const auto refused = [](auto change) {
    GeometryRequest request = vstream_device();
    change(request);
    const Result<Geometry> geometry = plan_geometry(request);
    return !geometry.ok() && geometry.error().code == EINVAL;
  };
  EXPECT_FALSE(refused([](GeometryRequest&) {}));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.plp = false; }));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.gc_mode = GcMode::kSameStream; }));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.map_unit_bytes = 8192; }));
}

}  // namespace
}  // namespace streamfs::ssd
