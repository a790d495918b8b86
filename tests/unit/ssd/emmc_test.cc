// The eMMC beside its paper: the interface, the 27 bytes, the switch at 90 % fill, power cuts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <ios>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "ssd/emmc_card.h"
#include "ssd/ftl/emmc/active_block.h"
#include "ssd/ftl/emmc/interface.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/layout.h"
#include "ssd/presets.h"
#include "ssd/ssd.h"
#include "tests/support/temporary.h"
#include "tests/unit/ssd/cut_nand.h"

namespace streamfs::ssd::emmc {
namespace {

constexpr uint64_t kPages = 1024;

GeometryRequest small_emmc() {
  GeometryRequest request = *find_preset("emmc-64g");
  request.ftl = FtlKind::kEmmc;
  request.user_bytes = kPages * kPageBytes;
  request.nand = NandShape{1, 1, 1, 1, 8, Cell::kSlc};  // blocks of 32 pages, wordlines of 4
  request.spare = 0.4;
  return request;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

uint64_t host_pages(EmmcCard& card, uint8_t stream) {
  return card.ssd().stats().streams.at(stream).written_bytes / kPageBytes;
}

class EmmcTest : public ::testing::Test {
 protected:
  void create() {
    const Result<void> made = Image::create(path_, *plan_geometry(small_emmc()), false);
    ASSERT_TRUE(made.ok()) << made.error().message();
  }
  std::unique_ptr<EmmcCard> open(const SsdOptions& options = {}) {
    Result<std::unique_ptr<EmmcCard>> device = EmmcCard::open(path_, options);
    EXPECT_TRUE(device.ok()) << device.error().message();
    return device.ok() ? std::move(*device) : nullptr;
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.file("emmc");
};

TEST(EmmcInterface, TheStreamIsFourBitsOfSetBlockCount) {
  EXPECT_EQ(context_id_of(0), 0);
  EXPECT_EQ(context_id_of(cmd23_argument(8, 3)), 3);
  EXPECT_EQ(cmd23_argument(0xffff, 15), 0x1e00'ffffu);
  EXPECT_EQ(context_id_of(0x2000'0000), 0);  // bit 29 is another's
}

TEST(EmmcInterface, FourStreamsAre108Bytes) {
  EXPECT_EQ(sizeof(ActiveBlock), 27u);
  EXPECT_EQ(sizeof(std::array<ActiveBlock, kStreams>), 108u);
  ActiveBlock record;
  record.block = 0x12345678;
  record.sequence = UINT64_MAX - 1;
  EXPECT_EQ(uint32_t{record.block}, 0x12345678u);
  EXPECT_EQ(uint64_t{record.sequence}, UINT64_MAX - 1);
}

TEST(EmmcInterface, StreamsEndAboveNineTenths) {
  StreamSwitch streams(1000);
  EXPECT_EQ(streams.frontier(3, 900), 3);
  EXPECT_EQ(streams.frontier(3, 901), 0);
  EXPECT_EQ(streams.frontier(5, 10), 0);  // an id the device has no block for
  streams.set(false);
  EXPECT_EQ(streams.frontier(3, 10), 0);
}

TEST_F(EmmcTest, WritesGoToTheActiveBlockOfTheirStream) {
  create();
  const auto device = open();
  for (uint8_t id = 0; id <= kStreams; ++id)
    ASSERT_TRUE(device->write(cmd23_argument(8, id), 8 * id, content(8 * id, 8, 1)).ok());
  for (uint8_t id = 0; id <= kStreams; ++id) EXPECT_EQ(host_pages(*device, id), 8u);
  ASSERT_TRUE(device->write_ext_csd(kExtCsdStreams, 0).ok());
  EXPECT_EQ(device->read_ext_csd(kExtCsdStreams), 0);
  ASSERT_TRUE(device->write(cmd23_argument(8, 2), 100, content(100, 8, 1)).ok());
  EXPECT_EQ(host_pages(*device, 2), 8u);
  EXPECT_EQ(device->write_ext_csd(kExtCsdStreams, 2).error().code, EINVAL);
  EXPECT_EQ(device->write_ext_csd(5, 1).error().code, EINVAL);
}

TEST_F(EmmcTest, AFullDeviceHasNoStreams) {
  create();
  const auto device = open();
  for (uint64_t page = 0; page < kPages; page += 8)
    ASSERT_TRUE(device->write(cmd23_argument(8, 1), page, content(page, 8, 1)).ok());
  EXPECT_FALSE(device->streams_on());
  EXPECT_NEAR(static_cast<double>(host_pages(*device, 1)), 0.9 * kPages, 8);
  ASSERT_TRUE(device->ssd().trim(0, kPages / 2).ok());
  EXPECT_TRUE(device->streams_on());
}

TEST_F(EmmcTest, PowerUpLooksOnlyWhereTheContextDoesNotKnow) {
  create();
  auto device = open();
  EXPECT_EQ(device->blocks_read(), device->ssd().geometry().blocks);
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    const uint64_t page = random() % (kPages - 8);
    ASSERT_TRUE(
        device->write(cmd23_argument(8, static_cast<uint8_t>(i % 5)), page, content(page, 8, 2))
            .ok());
  }
  device.reset();
  device = open();
  EXPECT_LT(device->blocks_read(), device->ssd().geometry().blocks / 2);
}

TEST_F(EmmcTest, AnImageOfAnotherFtlIsNoCard) {
  GeometryRequest request = small_emmc();
  request.ftl = FtlKind::kPageMap;
  ASSERT_TRUE(Image::create(path_, *plan_geometry(request), false).ok());
  const auto card = EmmcCard::open(path_, {});
  ASSERT_FALSE(card.ok());
  EXPECT_EQ(card.error().code, EINVAL);
  EXPECT_NE(card.error().context.find("an image of the FTL page-map"), std::string::npos);
}

TEST_F(EmmcTest, AnEmmcThatThePaperDoesNotKnowIsRefused) {
  const auto refused = [](auto change) {
    GeometryRequest request = small_emmc();
    change(request);
    const Result<Geometry> geometry = plan_geometry(request);
    return !geometry.ok() && geometry.error().code == EINVAL;
  };
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.plp = true; }));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.streams = 6; }));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.gc_mode = GcMode::kOwnFrontier; }));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.map_unit_bytes = 8192; }));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.bad_blocks = 1; }));
  EXPECT_TRUE(refused([](GeometryRequest& request) { request.failures.erase_per_billion = 1; }));
}

TEST_F(EmmcTest, WithStreamsOffCopiesStillShareOneBlock) {
  create();
  std::mt19937 random(1);
  for (const bool off : {false, true}) {
    const auto device = open({.streams_off = off});
    for (int i = 0; i < 1000; ++i) {
      const uint64_t page = random() % (kPages / 2);
      const auto id = static_cast<uint8_t>(i % 5);
      ASSERT_TRUE(device->write(cmd23_argument(8, id), page, content(page, 8, 2)).ok());
    }
    EXPECT_EQ(host_pages(*device, 1), 200u * 8);  // none with streams off
  }
}

TEST_F(EmmcTest, OpenForReadingItChangesNothing) {
  create();
  ASSERT_TRUE(open()->write(cmd23_argument(8, 1), 0, content(0, 8, 1)).ok());
  const std::string before = bytes_of(path_);
  std::vector<std::byte> bytes(8 * kPageBytes);
  {
    const auto device = open({.read_only = true});
    ASSERT_TRUE(device->ssd().read(0, bytes).ok());
    EXPECT_TRUE(same_bytes(bytes, content(0, 8, 1)));  // two whole wordlines
    EXPECT_EQ(device->ssd().write(0, bytes, VStreamId{0}, PStreamId{0}).error().code, EROFS);
  }
  EXPECT_EQ(bytes_of(path_), before);
}

// The newest contexts are lost: the log is as it was before most of the writes.
TEST_F(EmmcTest, WithOldContextsOnlyPowerUpReadsAllBlocks) {
  create();
  const Geometry geometry = *plan_geometry(small_emmc());
  const ImageOffsets offsets = image_offsets(geometry);
  const uint64_t log = offsets.data + geometry.physical_pages() * kPageBytes;
  std::vector<uint64_t> model(kPages);
  std::mt19937 random(1);
  const auto write_some = [&](EmmcCard& card, uint64_t writes) {
    for (uint64_t i = 0; i < writes; ++i) {
      const uint64_t page = random() % kPages;
      ASSERT_TRUE(card.write(cmd23_argument(8, 1), page, content(page, 1, i + 1)).ok());
      model[page] = i + 1;
    }
    ASSERT_TRUE(card.ssd().flush().ok());
  };
  write_some(*open(), 100);
  const std::string before = bytes_of(path_);
  write_some(*open(), 5000);
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(log));
    file.write(before.data() + log, static_cast<std::streamsize>(before.size() - log));
  }
  const auto device = open();
  EXPECT_EQ(device->blocks_read(), geometry.blocks);
  std::vector<std::byte> bytes(kPageBytes);
  for (uint64_t page = 0; page < kPages; ++page) {
    ASSERT_TRUE(device->ssd().read(page, bytes).ok());
    ASSERT_TRUE(same_bytes(bytes, content(page, 1, model[page]))) << page;
  }
}

// Power-up does not read the spare areas of full blocks, so it may take a damaged entry over.
TEST_F(EmmcTest, ACopyOfADamagedSpareEntryIsDamaged) {
  create();
  constexpr uint64_t kDamaged = 40, kNamed = 41;
  const Geometry geometry = *plan_geometry(small_emmc());
  {
    const auto device = open();
    for (uint64_t page = 0; page < kPages / 2; ++page)
      ASSERT_TRUE(device->write(0, page, content(page, 1, 1)).ok());
    ASSERT_TRUE(device->ssd().flush().ok());
  }
  {
    const auto image = std::move(*Image::open(path_, Image::Access::kHold, 0));
    const auto entry = std::ranges::find(image->spare(), kDamaged, &SpareEntry::lpn);
    ASSERT_NE(entry, image->spare().end());
    entry->lpn = kNamed;
  }
  {
    const auto device = open();
    std::mt19937 random(1);
    for (int i = 0; i < 4000; ++i) {
      const uint64_t page = kPages / 2 + random() % (kPages / 2);
      ASSERT_TRUE(device->write(0, page, content(page, 1, 2)).ok());
    }
    // Empties the blocks of the old pages but for a few, so that these are copied.
    for (uint64_t page = 0; page < kPages / 2; ++page) {
      if (page % 32 == kDamaged % 32 || page == kNamed) continue;
      ASSERT_TRUE(device->write(0, page, content(page, 1, 2)).ok());
    }
    for (int i = 0; i < 4000; ++i) {
      const uint64_t page = kPages / 2 + random() % (kPages / 2);
      ASSERT_TRUE(device->write(0, page, content(page, 1, 2)).ok());
    }
    ASSERT_TRUE(device->ssd().flush().ok());
    EXPECT_GT(device->ssd().stats().gc_bytes, 0u);
  }
  const auto device = open();
  EXPECT_EQ(device->blocks_read(), geometry.blocks);
  EXPECT_EQ(device->ssd().stats().damaged_pages, 1u);
  std::vector<std::byte> bytes(kPageBytes);
  ASSERT_TRUE(device->ssd().read(kNamed, bytes).ok());
  EXPECT_TRUE(same_bytes(bytes, content(kNamed, 1, 1)));
}

uint64_t first_word(ConstBytes bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof(word));
  return word;
}

// Returns the first word of content(), without making all of it.
uint64_t first_word_of(uint64_t page, uint64_t version) {
  return version == 0 ? 0 : page << 32 ^ version * 0x9e3779b97f4a7c15;
}

// A device beside a model: of each page, the versions that it may have after a cut.
class Cuts {
 public:
  Cuts(std::string path, uint64_t seed)
      : path_(std::move(path)), random_(seed), nand_(seed, 32, false), allowed_(kPages, {0}) {}

  // Writes, trims, flushes and rests until the power goes.
  void run_until_cut() {
    nand_.cut_after(random_() % 400);
    while (step()) {
    }
    device_.reset();
  }

  // The power may go in recovery, too.
  void power_up() {
    while (random_() % 4 == 0) {
      nand_.cut_after(random_() % 3);
      Result<std::unique_ptr<EmmcCard>> device = EmmcCard::open(path_, {.faults = &nand_});
      if (device.ok()) continue;
      EXPECT_EQ(device.error().code, EIO) << device.error().message();
      ++recoveries_cut;
    }
    nand_.never();
    Result<std::unique_ptr<EmmcCard>> device = EmmcCard::open(path_, {.faults = &nand_});
    ASSERT_TRUE(device.ok()) << device.error().message();
    device_ = std::move(*device);
  }

  void look() {
    std::vector<std::byte> bytes(kPageBytes);
    for (uint64_t page = 0; page < kPages; ++page) {
      ASSERT_TRUE(device_->ssd().read(page, bytes).ok()) << "page " << page;
      const auto found = std::ranges::find_if(allowed_[page], [&](uint64_t version) {
        return first_word(bytes) == first_word_of(page, version) &&
               same_bytes(bytes, content(page, 1, version));
      });
      ASSERT_NE(found, allowed_[page].end()) << "page " << page << " is none of what it may be";
      allowed_[page] = {*found};
    }
  }

  EmmcCard& device() { return *device_; }
  const CutNand& nand() const { return nand_; }
  uint64_t recoveries_cut = 0, idle_pages = 0;

 private:
  bool step() {
    const uint64_t what = random_() % 12;
    if (what == 0) {
      if (!device_->ssd().flush().ok()) return false;
      for (std::vector<uint64_t>& versions : allowed_) versions = {versions.back()};
      return true;
    }
    if (what == 2) {
      idle_pages += device_->ssd().run_idle({.pages = 40, .free_blocks = 20}).gc_pages;
      return device_->ssd().release(PStreamId{1}).ok();  // fails without power
    }
    const uint64_t pages = 1 + random_() % 12, page = random_() % (kPages - pages);
    const uint64_t version = what == 1 ? 0 : ++version_;
    for (uint64_t i = page; i < page + pages; ++i) allowed_[i].push_back(version);
    const Result<void> done =
        version == 0 ? device_->ssd().trim(page, pages)
                     : device_->write(cmd23_argument(static_cast<uint16_t>(pages),
                                                     static_cast<uint8_t>(random_() % 5)),
                                      page, content(page, pages, version));
    EXPECT_TRUE(done.ok() || done.error().code == EIO) << done.error().message();
    if (done.ok() && version == 0)  // a trim that returned survives
      for (uint64_t i = page; i < page + pages; ++i) allowed_[i] = {0};
    return done.ok();
  }

  const std::string path_;
  std::mt19937_64 random_;
  CutNand nand_;
  std::vector<std::vector<uint64_t>> allowed_;
  std::unique_ptr<EmmcCard> device_;
  uint64_t version_ = 0;
};

constexpr int kDevices = 8, kCutsOfAnEmmc = 250;  // 2,000 in all

class EmmcPowerCuts : public EmmcTest, public ::testing::WithParamInterface<int> {};

TEST_P(EmmcPowerCuts, WhatWasFlushedIsThereByTheLastContext) {
  create();
  Cuts cuts(path_, static_cast<uint64_t>(GetParam()));
  cuts.power_up();
  uint64_t read = 0;
  for (int cut = 0; cut < kCutsOfAnEmmc && !HasFailure(); ++cut) {
    SCOPED_TRACE("cut " + std::to_string(cut));
    cuts.run_until_cut();
    cuts.power_up();
    if (!HasFailure()) cuts.look();
    read += cuts.device().blocks_read();
  }
  EXPECT_GT(cuts.nand().programs_cut, 0u);
  EXPECT_GT(cuts.nand().erases_cut, 0u);
  EXPECT_GT(cuts.recoveries_cut, 0u);
  EXPECT_GT(cuts.idle_pages, 0u);
  EXPECT_LT(read, uint64_t{kCutsOfAnEmmc} * cuts.device().ssd().geometry().blocks / 2);
}

INSTANTIATE_TEST_SUITE_P(Seed, EmmcPowerCuts, ::testing::Range(1, kDevices + 1));

}  // namespace
}  // namespace streamfs::ssd::emmc
