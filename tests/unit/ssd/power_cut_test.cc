// Power cuts at any NAND operation: what was acknowledged is there, by content, and nothing torn
// is.
//
// Each device is cut again and again; a cut falls on a random program or erase, in recovery too.
// The gate runs 500 cuts; STREAMFS_LONG=1 runs 10,000.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "ssd/geometry.h"
#include "ssd/ssd.h"
#include "tests/unit/ssd/cut_nand.h"
#include "tests/unit/ssd/ssd_fixture.h"

namespace streamfs::ssd {
namespace {

constexpr uint64_t kCutPages = 1024;
constexpr int kCutsOfADevice = 25;
constexpr uint64_t kParts = 10;  // of the long test, for its time limit

// Every third device loses blocks, too.
bool wears(uint64_t seed) {
  return seed % 3 == 0;
}

GeometryRequest device_of(uint64_t seed) {
  GeometryRequest request;
  request.user_bytes = kCutPages * kPageBytes;
  request.spare = wears(seed) ? 1.5 : 0.4;
  request.streams = 3;
  request.plp = seed % 2 == 0;
  request.gc_mode = static_cast<GcMode>(seed / 8 % 3);
  const bool tlc = seed / 2 % 2 == 0;
  request.nand = tlc ? NandShape{1, 1, 1, 1, 3, Cell::kTlc} : NandShape{1, 1, 2, 2, 2, Cell::kSlc};
  request.map_unit_bytes = seed / 4 % 2 == 0 ? 4096 : 16384;
  if (seed % 8 == 2) {
    request.ftl = FtlKind::kVStream;
    if (request.gc_mode == GcMode::kSameStream) request.gc_mode = GcMode::kOwnFrontier;
  }
  return request;
}

class PowerCut : public SsdTest {
 protected:
  // Versions that each page may read as after a cut.
  using Allowed = std::vector<std::vector<uint64_t>>;

  // A random request beside the model; false once the power is gone.
  bool step(Ssd& ssd, std::mt19937_64& random) {
    const uint64_t what = random() % 16;
    if (what == 0) {
      const bool done = ssd.flush().ok();
      if (done) settle_all();
      return done;
    }
    if (what == 2) {
      (void)ssd.run_idle({.pages = random() % 100, .wear_spread = 3});
      return ssd.flush().ok() ? (settle_all(), true) : false;
    }
    if (what == 3) return ssd.release(PStreamId(static_cast<uint16_t>(random() % 3))).ok();
    const uint64_t pages = 1 + random() % 24, page = random() % (kCutPages - pages);
    const uint64_t version = what == 1 ? 0 : ++version_;
    const uint64_t unit = ssd.geometry().map_unit_pages;
    const uint64_t first = version == 0 ? round_up(page, unit) : page;
    const uint64_t end = version == 0 ? round_down(page + pages, unit) : page + pages;
    for (uint64_t i = first; i < end; ++i) allowed_[i].push_back(version);
    const auto stream = static_cast<uint16_t>(random() % 3);
    const Result<void> done = version == 0 ? ssd.trim(page, pages)
                                           : ssd.write(page, content(page, pages, version),
                                                       VStreamId{stream}, PStreamId{stream});
    EXPECT_TRUE(done.ok() || done.error().code == EIO) << done.error().message();
    if (done.ok() && ssd.geometry().plp)
      for (uint64_t i = first; i < end; ++i) settle(i);
    return done.ok();
  }

  void settle(uint64_t page) { allowed_[page] = {allowed_[page].back()}; }
  void settle_all() {
    for (uint64_t page = 0; page < kCutPages; ++page) settle(page);
  }

  // The content that is read counts from now on.
  void look(Ssd& ssd) {
    for (uint64_t page = 0; page < kCutPages; ++page) {
      const auto bytes = get(ssd, page, 1);
      const auto is = [&](uint64_t version) {
        return same_bytes(bytes, content(page, 1, version));
      };
      const auto found = std::ranges::find_if(allowed_[page], is);
      ASSERT_NE(found, allowed_[page].end()) << "page " << page << " of " << allowed_[page].size();
      allowed_[page] = {*found};
    }
  }

  // Opens the device; with a small chance the power goes in recovery first.
  std::unique_ptr<Ssd> power_up(CutNand& nand, std::mt19937_64& random) {
    while (random() % 4 == 0) {
      nand.cut_after(0);
      if (auto ssd = Ssd::open(path_, {.faults = &nand}); ssd.ok()) break;
    }
    nand.never();
    return open({.faults = &nand});
  }

  void cut_device(uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    create(device_of(seed));
    allowed_.assign(kCutPages, {0});
    std::mt19937_64 random(seed);
    CutNand nand(seed, plan_geometry(device_of(seed))->in_map_units().pages_per_block, wears(seed));
    auto ssd = open({.faults = &nand});
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(step(*ssd, random));
    for (int cut = 0; cut < kCutsOfADevice; ++cut) {
      SCOPED_TRACE("cut " + std::to_string(cut));
      random() % 8 == 0 ? nand.cut_erasing() : nand.cut_after(random() % 600);
      while (step(*ssd, random)) {
      }
      ssd.reset();
      ssd = power_up(nand, random);
      ASSERT_NE(ssd, nullptr);
      ASSERT_EQ(ssd->stats().damaged_pages, 0u);
      look(*ssd);
      if (HasFailure()) return;
    }
    erases_cut_ += nand.erases_cut;
    programs_cut_ += nand.programs_cut;
  }

  Allowed allowed_;
  uint64_t erases_cut_ = 0, programs_cut_ = 0;
};

class PowerCuts : public PowerCut, public ::testing::WithParamInterface<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Part, PowerCuts, ::testing::Range<uint64_t>(0, kParts));

TEST_P(PowerCuts, LoseNothingAcknowledgedAndServeNothingTorn) {
  const char* wanted = std::getenv("STREAMFS_LONG");
  const bool all = wanted != nullptr && std::strcmp(wanted, "1") == 0;
  const uint64_t devices = (all ? 10'000 : 500) / kCutsOfADevice;
  for (uint64_t seed = 1 + GetParam(); seed <= devices && !HasFailure(); seed += kParts)
    cut_device(seed);
  EXPECT_GT(programs_cut_, kCutsOfADevice / 2u);
  EXPECT_GT(erases_cut_, 0u);
  RecordProperty("programs_cut", static_cast<int>(programs_cut_));
  RecordProperty("erases_cut", static_cast<int>(erases_cut_));
}

TEST_F(PowerCut, ADeviceWithoutPowerRefusesEverything) {
  create(small_device());
  CutNand nand(1, 32, false);
  const auto ssd = open({.faults = &nand});
  nand.cut_after(3);
  EXPECT_EQ(ssd->write(0, content(0, 8, 1), {}, {}).error().code, EIO);
  EXPECT_EQ(ssd->write(0, content(0, 1, 1), {}, {}).error().code, EIO);
  EXPECT_EQ(ssd->flush().error().code, EIO);
  EXPECT_EQ(ssd->trim(0, 8).error().code, EIO);
}

}  // namespace
}  // namespace streamfs::ssd
