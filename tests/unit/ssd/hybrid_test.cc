// The hybrid FTL: what it promises of words, of cuts in persistent memory and on flash, and of
// what it reads at start.
#include "ssd/ftl/hybrid.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "pmem/recording_region.h"
#include "pmem/region.h"
#include "ssd/counters.h"
#include "ssd/ftl/hybrid_layout.h"
#include "ssd/ftl/nand.h"
#include "ssd/ftl/translation.h"
#include "ssd/geometry.h"
#include "ssd/media/serial_nand.h"
#include "tests/unit/ssd/serial_device.h"

namespace streamfs::ssd {
namespace {

static_assert(Ftl<HybridFtl>);

std::unique_ptr<pmem::Region> region_for(const Geometry& geometry) {
  return pmem::make_memory_region(HybridFtl::region_bytes(geometry), pmem::MetaClass::kPersistent);
}

struct HybridDevice : SerialHost {
  explicit HybridDevice(const Geometry& shape, std::unique_ptr<pmem::Region> memory = nullptr)
      : SerialHost(shape), region(memory ? std::move(memory) : region_for(shape)) {
    EXPECT_TRUE(HybridFtl::format(shape, *region).ok());
    reopen();
  }
  void reopen() {
    auto opened = HybridFtl::open(geometry, *region, nand, counters);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    ftl = std::move(*opened);
  }
  int put(Lpn page) { return write(*ftl, page); }
  uint64_t words() const { return region->counters().words_programmed; }

  std::unique_ptr<pmem::Region> region;
  std::unique_ptr<HybridFtl> ftl;
};

// Dead bits that are not as they must be; `late` of them may be missing.
uint64_t wrong_bits(const Geometry& geometry, const pmem::Region& region, HybridFtl& ftl,
                    SerialNand& nand, bool* buried_live) {
  const HybridLayout layout(geometry);
  uint64_t late = 0;
  for (BlockIndex block = 0; block < geometry.blocks; ++block) {
    bool pooled = block >= region.load(HybridLayout::never_used());
    for (uint32_t slot = 0; slot < kHybridPool; ++slot)
      pooled |= region.load(HybridLayout::pool(slot)) == block + 1;
    if (pooled) continue;
    for (uint32_t place = 0; place < geometry.pages_per_block; ++place) {
      const Ppn page = block * geometry.pages_per_block + place;
      const auto spare = nand.spare(page);
      const bool live =
          spare && spare->page < geometry.user_pages && ftl.location(spare->page) == page;
      const bool dead = (region.load(layout.dead(block, place / 64)) >> (place % 64) & 1) != 0;
      if (live && dead) *buried_live = true;
      if (spare && !live && !dead) ++late;
    }
  }
  return late;
}

TEST(Hybrid, PagesReadAsWrittenThroughCollections) {
  for (const uint64_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    HybridDevice device(serial_geometry(500, 8, 72));
    std::mt19937_64 random(seed);
    for (int i = 0; i < 20'000; ++i) {
      if (random() % 20 == 0) device.trim(*device.ftl, static_cast<Lpn>(random() % 500));
      if (random() % 100 == 0) device.reopen();
      ASSERT_EQ(device.put(static_cast<Lpn>(random() % 500)), 0);
      if (i % 500 != 0) continue;
      device.expect_all(*device.ftl);
      bool buried_live = false;
      EXPECT_EQ(wrong_bits(device.geometry, *device.region, *device.ftl, device.nand, &buried_live),
                0u);
      EXPECT_FALSE(buried_live);
      ASSERT_FALSE(HasFailure()) << "write " << i;
    }
    EXPECT_GT(device.counters.erases, 500u);
    EXPECT_EQ(device.nand.operations().programs,
              device.counters.host_pages + device.counters.gc_pages);
  }
}

TEST(Hybrid, APageCostsTwoWordsAndOneWhereNothingLay) {
  HybridDevice device(serial_geometry(512, 64, 13));
  uint64_t before = device.words();
  for (Lpn page = 0; page < 64; ++page) ASSERT_EQ(device.put(page), 0);
  // The frontier: two words, and none of the dead bits, which are clear.
  EXPECT_EQ(device.words() - before, 64u + 2);
  before = device.words();
  for (Lpn page = 0; page < 64; ++page) ASSERT_EQ(device.put(page), 0);
  EXPECT_EQ(device.words() - before, 2 * 64u + 2);
  before = device.words();
  device.trim(*device.ftl, 7);
  EXPECT_EQ(device.words() - before, 2u);
}

TEST(Hybrid, StartReadsTheSameHoweverLargeTheDevice) {
  std::vector<uint64_t> words, spares;
  for (const uint32_t blocks : {16u, 64u, 256u}) {
    HybridDevice device(serial_geometry(blocks * 64, 64, blocks + 8));
    for (Lpn page = 0; page < blocks * 64; ++page) ASSERT_EQ(device.put(page), 0);
    for (Lpn page = 0; page < 1000; ++page) ASSERT_EQ(device.put(page), 0);
    const uint64_t reads = device.nand.operations().spare_reads;
    device.reopen();
    words.push_back(device.ftl->words_read());
    spares.push_back(device.nand.operations().spare_reads - reads);
    device.expect_all(*device.ftl);
  }
  EXPECT_LE(words[2], words[0] + 4);
  EXPECT_LE(spares[2], 2 * 8u + 4);
  EXPECT_LT(HybridFtl::ram_bytes(), 100u);
}

TEST(Hybrid, ADeviceFullOfLiveDataGoesOn) {
  const Geometry geometry = serial_geometry(96, 8, 17);
  HybridDevice device(geometry);
  for (int round = 0; round < 20; ++round)
    for (Lpn page = 0; page < 96; ++page) ASSERT_EQ(device.put(page * 7 % 96), 0) << round;
  device.expect_all(*device.ftl);
}

// Flash that keeps what it was after each program and erase, and marks that in the recording.
class StagedNand final : public Nand {
 public:
  StagedNand(SerialNand& flash, pmem::RecordingRegion& region) : flash_(flash), region_(region) {}

  void start() {
    stages.clear();
    stages.push_back(flash_);
  }
  uint32_t page_bytes() const override { return flash_.page_bytes(); }
  int program(Ppn at, const Spare& spare, const std::byte* data) override {
    return done(flash_.program(at, spare, data));
  }
  int copy(Ppn from, Ppn to, const Spare& spare) override {
    return done(flash_.copy(from, to, spare));
  }
  int erase(BlockIndex block) override { return done(flash_.erase(block)); }
  int read(Ppn at, std::byte* data) override { return flash_.read(at, data); }
  std::optional<Spare> spare(Ppn at) override { return flash_.spare(at); }

  std::vector<SerialNand> stages;

 private:
  int done(int error) {
    stages.push_back(flash_);
    region_.mark();
    return error;
  }
  SerialNand& flash_;
  pmem::RecordingRegion& region_;
};

// Every block is free once, open once, or known by its pages; an open one has room.
void expect_every_block(const Geometry& geometry, const pmem::Region& region, SerialNand& flash) {
  const HybridLayout layout(geometry);
  const uint64_t never_used = region.load(HybridLayout::never_used());
  for (BlockIndex block = 0; block < geometry.blocks; ++block) {
    int frees = block >= never_used ? 1 : 0, opens = 0;
    for (uint32_t slot = 0; slot < kHybridPool; ++slot)
      frees += region.load(HybridLayout::pool(slot)) == block + 1 ? 1 : 0;
    for (uint32_t name = 0; name < kHybridFrontiers; ++name)
      opens += region.load(HybridLayout::open(name)) == block + 1 ? 1 : 0;
    ASSERT_LE(frees + opens, 1) << "block " << block;
    const uint64_t dead = region.load(layout.dead(block, 0));
    const bool erased = !flash.spare(block * geometry.pages_per_block);
    if (erased && frees + opens == 0) {
      ASSERT_EQ(dead, 15u) << "block " << block << " is lost";
    }
    for (uint32_t place = 0; opens == 1 && place < geometry.pages_per_block; ++place) {
      if (flash.spare(block * geometry.pages_per_block + place)) continue;
      ASSERT_EQ(dead >> place & 1, 0u) << "a page to come of block " << block << " is dead";
    }
  }
}

std::unique_ptr<pmem::RecordingRegion> recording_for(const Geometry& geometry) {
  return std::make_unique<pmem::RecordingRegion>(HybridFtl::region_bytes(geometry),
                                                 pmem::MetaClass::kPersistent);
}

// A device found after a cut: every page as it was before the operation or after it, nothing live
// taken for dead, and one bit late at most, of a trim.
void expect_recovered(const HybridDevice& device, const std::vector<uint64_t>& before,
                      const pmem::CrashImage& image, SerialNand flash) {
  pmem::ScratchRegion region(image.words);
  Counters counters;
  const auto opened = HybridFtl::open(device.geometry, region, flash, counters);
  ASSERT_TRUE(opened.ok()) << image.description();
  HybridFtl& ftl = **opened;
  for (Lpn page = 0; page < before.size(); ++page) {
    uint64_t found = 0;
    if (ftl.live(page)) {
      ASSERT_EQ(flash.read(ftl.location(page), reinterpret_cast<std::byte*>(&found)), 0);
    }
    ASSERT_TRUE(found == before[page] || found == device.holds[page])
        << image.description() << ", page " << page;
  }
  bool buried_live = false;
  ASSERT_LE(wrong_bits(device.geometry, region, ftl, flash, &buried_live), 1u)
      << image.description();
  ASSERT_FALSE(buried_live) << image.description();
  expect_every_block(device.geometry, region, flash);
}

// The power goes again while the device starts on what the first cut left.
uint64_t each_cut_of_start(const HybridDevice& device, const std::vector<uint64_t>& before,
                           const pmem::CrashImage& left, SerialNand flash) {
  pmem::RecordingRegion region(left.words);
  region.start_recording();
  Counters counters;
  EXPECT_TRUE(HybridFtl::open(device.geometry, region, flash, counters).ok());
  return pmem::each_crash_image(region.initial(), region.events(), {},
                                [&](const pmem::CrashImage& image) {
                                  expect_recovered(device, before, image, flash);
                                  return !testing::Test::HasFailure();
                                });
}

TEST(Hybrid, EveryCutAtAFenceRecovers) {
  const Geometry geometry = serial_geometry(24, 4, 12);
  auto recording = recording_for(geometry);
  pmem::RecordingRegion& region = *recording;
  HybridDevice device(geometry, std::move(recording));
  StagedNand staged(device.nand, region);
  device.ftl = std::move(*HybridFtl::open(geometry, region, staged, device.counters));
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(device.put(static_cast<Lpn>(random() % 24)), 0);
  uint64_t images = 0, again = 0;
  const uint64_t erases = device.counters.erases;
  for (int i = 0; i < 250; ++i) {
    const std::vector<uint64_t> before = device.holds;
    device.ftl->flush();
    region.start_recording();
    staged.start();
    const uint64_t what = random() % 16;
    if (what == 0) {
      device.trim(*device.ftl, static_cast<Lpn>(random() % 24));
    } else {
      ASSERT_EQ(device.put(static_cast<Lpn>(random() % 24)), 0);
    }
    images += pmem::each_crash_image(region.initial(), region.events(), {},
                                     [&](const pmem::CrashImage& image) {
                                       const SerialNand& flash = staged.stages[image.marks];
                                       expect_recovered(device, before, image, flash);
                                       again += each_cut_of_start(device, before, image, flash);
                                       return !testing::Test::HasFailure();
                                     });
    ASSERT_FALSE(HasFailure()) << "operation " << i;
  }
  EXPECT_GT(device.counters.erases, erases + 20);
  EXPECT_GT(images, 1000u);
  EXPECT_GT(again, 1000u);
}

// Power cut on flash, at any program or erase: of what was not yet fenced, anything is there.
TEST(Hybrid, EveryCutOfFlashRecovers) {
  const Geometry geometry = serial_geometry(48, 4, 20);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    HybridDevice device(geometry, recording_for(geometry));
    std::mt19937_64 random(seed);
    for (int cut = 0; cut < 25; ++cut) {
      auto& region = static_cast<pmem::RecordingRegion&>(*device.region);
      region.start_recording();
      device.nand.cut_after(random() % 60, random());
      int error = 0;
      while (error == 0) {
        if (random() % 16 == 0) device.trim(*device.ftl, static_cast<Lpn>(random() % 48));
        error = device.put(static_cast<Lpn>(random() % 48));
      }
      ASSERT_EQ(error, EIO);
      region.mark();
      std::vector<std::vector<uint64_t>> left;
      pmem::each_crash_image(region.initial(), region.events(), {.from_mark = 1},
                             [&](const pmem::CrashImage& image) {
                               left.push_back(image.words);
                               return true;
                             });
      ASSERT_FALSE(left.empty());
      device.nand.power_on();
      device.region = std::make_unique<pmem::RecordingRegion>(left[random() % left.size()]);
      device.reopen();
      for (Lpn page = 0; page < 48; ++page) {
        const uint64_t found = device.read(*device.ftl, page);
        if (page == device.tried && found == device.versions) device.holds[page] = found;
        ASSERT_EQ(found, device.holds[page]) << "page " << page << ", cut " << cut;
      }
      bool buried_live = false;
      (void)wrong_bits(geometry, *device.region, *device.ftl, device.nand, &buried_live);
      ASSERT_FALSE(buried_live);
    }
  }
}

TEST(Hybrid, ForeignMemoryAndImpossibleDevicesAreRefused) {
  const Geometry geometry = serial_geometry(512, 64, 16);
  HybridDevice device(geometry);
  const auto refused = [&](const Geometry& shape, pmem::Region& region, const std::string& why) {
    const auto opened = HybridFtl::open(shape, region, device.nand, device.counters);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, EINVAL);
    EXPECT_NE(opened.error().context.find(why), std::string::npos) << opened.error().context;
  };
  refused(serial_geometry(448, 64, 16), *device.region, "512 user pages on 16 blocks of 64");
  const auto empty = region_for(geometry);
  refused(geometry, *empty, "not the persistent memory of a hybrid FTL");
  EXPECT_EQ(HybridFtl::format(serial_geometry(512, 64, 12), *device.region).error().code, EINVAL);
  const auto small = pmem::make_memory_region(1024, pmem::MetaClass::kPersistent);
  EXPECT_EQ(HybridFtl::format(geometry, *small).error().code, EINVAL);
  Geometry many = geometry;
  many.low_water = kHybridPool;
  EXPECT_EQ(HybridFtl::format(many, *device.region).error().code, EINVAL);
}

}  // namespace
}  // namespace streamfs::ssd
