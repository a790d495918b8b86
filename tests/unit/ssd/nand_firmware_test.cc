// Images of the hybrid and the log-block FTL: power cuts, restarts, trims, a full device, and what
// their statistics say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <ios>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "ssd/background.h"
#include "ssd/counters.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/layout.h"
#include "ssd/presets.h"
#include "ssd/ssd.h"
#include "ssd/stats.h"
#include "tests/support/temporary.h"
#include "tests/unit/ssd/cut_nand.h"
#include "tests/unit/ssd/ssd_fixture.h"

namespace streamfs::ssd {
namespace {

constexpr uint64_t kNandPages = 512;
constexpr uint32_t kBlockPages = 32;

// The least spare that both FTLs can have: five log blocks, or six blocks beside the user's.
GeometryRequest tight(FtlKind ftl, uint64_t pages = kNandPages) {
  GeometryRequest request = nand_request(ftl);
  request.user_bytes = pages * kPageBytes;
  request.nand = NandShape{1, 1, 1, 1, 8, Cell::kSlc};  // blocks of 32 pages, wordlines of 4
  request.blocks = static_cast<uint32_t>(pages / kBlockPages) + 6;
  return request;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class NandFirmwareTest : public SsdTest, public ::testing::WithParamInterface<FtlKind> {
 protected:
  bool is_hybrid() const { return GetParam() == FtlKind::kHybrid; }
  static uint64_t written_pages(const std::vector<uint64_t>& model) {
    return static_cast<uint64_t>(
        std::ranges::count_if(model, [](uint64_t version) { return version != 0; }));
  }
};

std::string name_of_param(const ::testing::TestParamInfo<FtlKind>& info) {
  return info.param == FtlKind::kHybrid ? "Hybrid" : "LogBlock";
}

INSTANTIATE_TEST_SUITE_P(Ftl, NandFirmwareTest,
                         ::testing::Values(FtlKind::kHybrid, FtlKind::kLogBlock), name_of_param);

TEST_P(NandFirmwareTest, PagesReadAsWrittenAfterEachRestart) {
  create(tight(GetParam()));
  std::vector<uint64_t> model(kNandPages);
  for (uint64_t seed = 1; seed <= 8 && !HasFailure(); ++seed) {
    const auto ssd = open();
    check(*ssd, model);
    churn(*ssd, model, seed, 300);
    check(*ssd, model);
    const SsdStats stats = ssd->stats();
    EXPECT_EQ(stats.streams.at(0).written_bytes, stats.written_bytes);
    EXPECT_EQ(stats.streams.at(0).gc_bytes, stats.gc_bytes);
    // Padding of the log-block FTL counts as live after a restart.
    if (is_hybrid() || seed == 1) {
      EXPECT_EQ(stats.live_bytes, written_pages(model) * kPageBytes);
    }
    EXPECT_GT(stats.gc_bytes, 0u);
    EXPECT_GT(stats.erases, 0u);
    EXPECT_GT(ssd->wear().most, 0u);
    EXPECT_EQ(stats.free_blocks, observe_stats(path_)->free_blocks);
  }
}

TEST_P(NandFirmwareTest, AFullDeviceTakesEveryOverwrite) {
  create(tight(GetParam()));
  std::vector<uint64_t> model(kNandPages);
  const auto ssd = open();
  put(*ssd, 0, kNandPages, ++version_);
  std::ranges::fill(model, version_);
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    const uint64_t page = random() % kNandPages;
    put(*ssd, page, 1, ++version_);
    model[page] = version_;
    ASSERT_FALSE(HasFailure()) << "write " << i;
  }
  check(*ssd, model);
  EXPECT_EQ(ssd->stats().live_bytes, kNandPages * kPageBytes);
  EXPECT_GT(ssd->stats().time.write.p50_us, 0);
  EXPECT_GT(ssd->stats().time.seconds, 0);
}

TEST_P(NandFirmwareTest, ADeviceThatWasTrimmedIsEmptyAfterARestart) {
  create(tight(GetParam()));
  put(*open(), 0, kNandPages, 1);
  {
    const auto ssd = open();
    ASSERT_TRUE(ssd->trim(0, kNandPages - 3).ok());
    EXPECT_EQ(ssd->stats().trimmed_bytes, (kNandPages - 3) * kPageBytes);
  }
  std::vector<uint64_t> model(kNandPages);
  std::fill(model.end() - 3, model.end(), 1);
  {
    const auto ssd = open();
    check(*ssd, model);
    EXPECT_EQ(ssd->stats().live_bytes, 3 * kPageBytes);
    EXPECT_EQ(ssd->stats().trimmed_bytes, (kNandPages - 3) * kPageBytes);
    put(*ssd, 7, 1, 2);
    model[7] = 2;
  }
  check(*open(), model);
}

TEST(NandFirmware, OnlyTheHybridStartsAlikeOnEachDevice) {
  TemporaryDirectory directory;
  std::vector<uint64_t> words, hybrid_spares, log_spares;
  for (const FtlKind ftl : {FtlKind::kHybrid, FtlKind::kLogBlock}) {
    for (const uint64_t pages : {512U, 2048U}) {
      const std::string path = directory.file(std::to_string(pages) + std::string(name_of(ftl)));
      ASSERT_TRUE(Image::create(path, *plan_geometry(tight(ftl, pages)), false).ok());
      {
        const auto ssd = std::move(*Ssd::open(path, {}));
        ASSERT_TRUE(ssd->write(0, content(0, pages, 1), {}, {}).ok());
      }
      ASSERT_TRUE(Ssd::open(path, {}).ok());
      const SsdStats stats = *observe_stats(path);
      if (ftl == FtlKind::kHybrid) words.push_back(count_of(stats, "words_read_at_power_up"));
      (ftl == FtlKind::kHybrid ? hybrid_spares : log_spares)
          .push_back(count_of(stats, "spare_areas_read_at_power_up"));
    }
  }
  EXPECT_GT(words[0], 0u);
  EXPECT_EQ(words[0], words[1]);
  EXPECT_EQ(hybrid_spares[0], hybrid_spares[1]);
  EXPECT_GT(log_spares[1], 3 * log_spares[0]);
}

TEST(NandFirmware, MergesAreCountedOverRestarts) {
  TemporaryDirectory directory;
  const std::string path = directory.file("ssd");
  ASSERT_TRUE(Image::create(path, *plan_geometry(tight(FtlKind::kLogBlock)), false).ok());
  uint64_t full = 0;
  for (const int writes : {400, 40}) {
    const auto ssd = std::move(*Ssd::open(path, {}));
    std::mt19937_64 random(1);
    for (int i = 0; i < writes; ++i)
      ASSERT_TRUE(ssd->write(random() % kNandPages, content(0, 1, 1), {}, {}).ok());
    for (uint64_t version = 1; version <= 3; ++version)
      ASSERT_TRUE(ssd->write(0, content(0, kNandPages, version), {}, {}).ok());
    EXPECT_GT(count_of(ssd->stats(), "merges_full"), full);
    EXPECT_GT(count_of(ssd->stats(), "merges_switched"), 0u);
    full = count_of(ssd->stats(), "merges_full");
  }
  EXPECT_EQ(count_of(*observe_stats(path), "merges_full"), full);
}

TEST(NandFirmware, IdleTimeCollectsOnTheHybridOnly) {
  TemporaryDirectory directory;
  for (const FtlKind ftl : {FtlKind::kHybrid, FtlKind::kLogBlock}) {
    const std::string path = directory.file(std::string(name_of(ftl)));
    ASSERT_TRUE(Image::create(path, *plan_geometry(tight(ftl)), false).ok());
    const auto ssd = std::move(*Ssd::open(path, {}));
    std::mt19937_64 random(1);
    std::vector<uint64_t> model(kNandPages);
    for (uint64_t version = 1; version <= 2000; ++version) {
      const uint64_t page = random() % (kNandPages / 2);
      ASSERT_TRUE(ssd->write(page, content(page, 1, version), {}, {}).ok());
      model[page] = version;
    }
    const uint64_t free = ssd->stats().free_blocks;
    const IdleReport report = ssd->run_idle({.free_blocks = 7});
    EXPECT_EQ(report.end, IdleReport::End::kNothingLeft);
    if (ftl == FtlKind::kHybrid) {
      EXPECT_GT(report.erases, 0u);
      EXPECT_GT(ssd->stats().free_blocks, free);
      EXPECT_EQ(report.gc_pages * kPageBytes, ssd->stats().idle_gc_bytes);
    } else {
      EXPECT_EQ(report.erases + report.gc_pages, 0u);
      EXPECT_EQ(ssd->urgency(), Urgency::kNone);
    }
    std::vector<std::byte> bytes(kPageBytes);
    for (uint64_t page = 0; page < kNandPages; ++page) {
      ASSERT_TRUE(ssd->read(page, bytes).ok());
      ASSERT_TRUE(same_bytes(bytes, content(page, 1, model[page]))) << "page " << page;
    }
  }
}

TEST(NandFirmware, IdleTimeLeavesRoomForTheHostsOwnCollections) {
  TemporaryDirectory directory;
  const std::string path = directory.file("ssd");
  GeometryRequest request = tight(FtlKind::kHybrid);
  request.low_water = 1;
  request.blocks = kNandPages / kBlockPages + 4;
  ASSERT_TRUE(Image::create(path, *plan_geometry(request), false).ok());
  const auto ssd = std::move(*Ssd::open(path, {}));
  std::mt19937_64 random(1);
  ASSERT_TRUE(ssd->write(0, content(0, kNandPages, 1), {}, {}).ok());
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(ssd->write(random() % kNandPages, content(0, 1, 1), {}, {}).ok()) << "write " << i;
    (void)ssd->run_idle({.pages = random() % 12, .free_blocks = 20});
  }
  EXPECT_GT(ssd->stats().idle_gc_bytes, 0u);
}

TEST_P(NandFirmwareTest, LivePagesAreCountedAtPowerUp) {
  create(tight(GetParam()));
  put(*open(), 0, 100, 1);
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(kSharedStateOffset + offsetof(SharedState, live) + offsetof(LiveCounts, live_pages));
    file.put(7);
  }
  EXPECT_EQ(open()->stats().live_bytes, 100 * kPageBytes);
}

TEST_P(NandFirmwareTest, WhatTheFtlCannotDoIsRefused) {
  const auto refused = [](auto change) {
    GeometryRequest request = tight(GetParam());
    change(request);
    const Result<Geometry> geometry = plan_geometry(request);
    return !geometry.ok() && geometry.error().code == EINVAL;
  };
  EXPECT_FALSE(refused([](GeometryRequest&) {}));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.plp = false; }));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.streams = 2; }));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.gc_mode = GcMode::kShared; }));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.victim = VictimKind::kCostBenefit; }));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.map_unit_bytes = 8192; }));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.bad_blocks = 1; }));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.failures.erase_per_billion = 1; }));
  EXPECT_EQ(refused([](GeometryRequest& request) {
              request.low_water = 8;
              request.blocks += 6;
            }),
            is_hybrid());
}

// A device beside a model. Whatever returned is kept; of the request that the cut hit, each page
// has its old or its new content.
class SerialCuts {
 public:
  SerialCuts(std::string path, uint64_t seed)
      : path_(std::move(path)),
        random_(seed),
        nand_(seed, kBlockPages, false),
        holds_(kNandPages) {}

  void run_until_cut() {
    nand_.cut_after(random_() % 300);
    while (step()) {
    }
    ssd_.reset();
  }

  // The power may go in recovery, too.
  void power_up() {
    while (random_() % 4 == 0) {
      nand_.cut_after(random_() % 3);
      if (!Ssd::open(path_, {.faults = &nand_}).ok()) ++recoveries_cut;
    }
    nand_.never();
    Result<std::unique_ptr<Ssd>> ssd = Ssd::open(path_, {.faults = &nand_});
    ASSERT_TRUE(ssd.ok()) << ssd.error().message();
    ssd_ = std::move(*ssd);
  }

  // Takes what the device has after the cut for what the model has.
  void look() {
    std::vector<std::byte> bytes(kPageBytes);
    for (uint64_t page = 0; page < kNandPages; ++page) {
      ASSERT_TRUE(ssd_->read(page, bytes).ok()) << "page " << page;
      const bool tried = page >= first_ && page < end_;
      if (tried && same_bytes(bytes, content(page, 1, tried_))) holds_[page] = tried_;
      ASSERT_TRUE(same_bytes(bytes, content(page, 1, holds_[page]))) << "page " << page;
    }
    first_ = end_ = 0;
  }

  // Opened for reading, the device has the same content, and no byte of it changes.
  void look_without_a_trace() {
    const std::string before = bytes_of(path_);
    ssd_ = std::move(*Ssd::open(path_, {.read_only = true}));
    std::vector<std::byte> read(kNandPages * kPageBytes), written(kNandPages * kPageBytes);
    ASSERT_TRUE(ssd_->read(0, read).ok());
    ssd_.reset();
    ASSERT_EQ(bytes_of(path_), before);
    nand_.never();
    ssd_ = std::move(*Ssd::open(path_, {.faults = &nand_}));
    ASSERT_TRUE(ssd_->read(0, written).ok());
    ASSERT_TRUE(same_bytes(read, written));
    ssd_.reset();
  }

  const CutNand& nand() const { return nand_; }
  uint64_t recoveries_cut = 0, idle_pages = 0;

 private:
  bool step() {
    const uint64_t what = random_() % 16;
    if (what == 0) return ssd_->flush().ok();
    if (what == 1) {
      idle_pages += ssd_->run_idle({.pages = 40, .free_blocks = 20}).gc_pages;
      return ssd_->release(PStreamId{0}).ok();  // fails without power
    }
    const uint64_t pages = 1 + random_() % (what < 4 ? 40 : 6);
    if (random_() % 4 == 0) next_ = random_() % kNandPages;
    first_ = std::min(next_, kNandPages - pages);
    next_ = end_ = first_ + pages;
    tried_ = what == 2 || what == 3 || what == 4 ? 0 : ++version_;
    const Result<void> done = tried_ == 0
                                  ? ssd_->trim(first_, pages)
                                  : ssd_->write(first_, content(first_, pages, tried_), {}, {});
    EXPECT_TRUE(done.ok() || done.error().code == EIO) << done.error().message();
    if (!done.ok()) return false;
    std::fill_n(holds_.begin() + static_cast<ptrdiff_t>(first_), pages, tried_);
    first_ = end_ = 0;
    return true;
  }

  const std::string path_;
  std::mt19937_64 random_;
  CutNand nand_;
  std::vector<uint64_t> holds_;  // by page: the version
  std::unique_ptr<Ssd> ssd_;
  uint64_t version_ = 0, next_ = 0;
  uint64_t first_ = 0, end_ = 0, tried_ = 0;  // the request that did not return
};

constexpr int kDevices = 2;

// The gate makes 250 cuts of each FTL, STREAMFS_LONG=1 makes 2,000.
int cuts_of_a_device() {
  const char* wanted = std::getenv("STREAMFS_LONG");
  return wanted != nullptr && std::strcmp(wanted, "1") == 0 ? 1000 : 125;
}

class NandFirmwareCuts : public SsdTest,
                         public ::testing::WithParamInterface<std::tuple<FtlKind, int>> {};

TEST_P(NandFirmwareCuts, WhatReturnedIsKept) {
  const auto [ftl, seed] = GetParam();
  create(tight(ftl));
  SerialCuts cuts(path_, static_cast<uint64_t>(seed));
  cuts.power_up();
  for (int cut = 0; cut < cuts_of_a_device() && !HasFailure(); ++cut) {
    SCOPED_TRACE("cut " + std::to_string(cut));
    cuts.run_until_cut();
    if (cut % 10 == 0) cuts.look_without_a_trace();
    cuts.power_up();
    if (!HasFailure()) cuts.look();
  }
  EXPECT_GT(cuts.nand().programs_cut, 0u);
  EXPECT_GT(cuts.nand().erases_cut, 0u);
  if (ftl == FtlKind::kHybrid) {
    EXPECT_GT(cuts.idle_pages, 0u);
  } else {
    EXPECT_GT(cuts.recoveries_cut, 0u);  // the hybrid's recovery programs and erases nothing
  }
}

INSTANTIATE_TEST_SUITE_P(Seed, NandFirmwareCuts,
                         ::testing::Combine(::testing::Values(FtlKind::kHybrid, FtlKind::kLogBlock),
                                            ::testing::Range(1, kDevices + 1)));

}  // namespace
}  // namespace streamfs::ssd
