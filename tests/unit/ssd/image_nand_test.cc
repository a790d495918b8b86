// The flash of an image as Nand: its contract after a power cut.
#include "ssd/media/image_nand.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "ssd/counters.h"
#include "ssd/ftl/nand.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/layout.h"
#include "ssd/media/image_media.h"
#include "ssd/media/nand_faults.h"
#include "ssd/presets.h"
#include "tests/support/temporary.h"

namespace streamfs::ssd {
namespace {

// Cuts the power in a program or erase of this block.
class CutOfBlock final : public NandFaults {
 public:
  enum class Fate : uint8_t { kWhole, kDataTorn, kEntryTorn, kNotBegun };
  explicit CutOfBlock(BlockIndex block, Fate fate) : block_(block), fate_(fate) {}

  bool power_fails_programming(Ppn first, uint32_t) override {
    return first / kBlockPages == block_ && first % kBlockPages == 1;
  }
  bool power_fails_erasing(BlockIndex block) override { return block == block_; }
  void tear(Bytes data, SpareEntry& entry) override {
    if (fate_ == Fate::kDataTorn) data[1000] = ~data[1000];
    if (fate_ == Fate::kEntryTorn) entry.sequence ^= 1;
    if (fate_ == Fate::kNotBegun) entry = SpareEntry{};
  }
  static constexpr uint32_t kBlockPages = 32;

 private:
  const BlockIndex block_;
  const Fate fate_;
};

class ImageNandTest : public ::testing::Test {
 protected:
  ImageNandTest() {
    GeometryRequest request = nand_request(FtlKind::kHybrid);
    request.user_bytes = 512 * kPageBytes;
    request.pages_per_block = CutOfBlock::kBlockPages;
    geometry_ = *plan_geometry(request);
    EXPECT_TRUE(Image::create(path_, geometry_, false).ok());
    restart();
  }
  void restart(NandFaults* faults = nullptr) {
    nand_.reset();
    image_.reset();
    image_ = std::move(*Image::open(path_, Image::Access::kHold, 0));
    nand_ = std::make_unique<ImageNand>(*image_, latency_, faults);
  }
  int program(Ppn at) {
    return nand_->program(at, {.page = at + 100, .sequence = at, .padding = false},
                          content(at, 1, 1).data());
  }
  int read(Ppn at) {
    std::vector<std::byte> bytes(kPageBytes);
    const int error = nand_->read_pages(at, bytes.data(), 1);
    if (error == 0) {
      EXPECT_TRUE(same_bytes(bytes, content(at, 1, 1)));
    }
    return error;
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.file("ssd");
  Geometry geometry_;
  Counters counters_{};
  LatencyModel latency_{timing_of(Cell::kSlc), Geometry{}, counters_};
  std::unique_ptr<Image> image_;
  std::unique_ptr<ImageNand> nand_;
};

TEST_F(ImageNandTest, ASpareAreaComesBackAfterARestart) {
  const Spare given{.page = 9, .replaced = 77, .sequence = 5, .padding = false, .in_place = true};
  ASSERT_EQ(nand_->program(0, given, content(0, 1, 1).data()), 0);
  ASSERT_EQ(nand_->program(1, {.page = 10, .sequence = 6}, nullptr), 0);
  restart();
  const std::optional<Spare> found = nand_->spare(0), padding = nand_->spare(1);
  ASSERT_TRUE(found && padding);
  EXPECT_EQ(found->page, 9u);
  EXPECT_EQ(found->replaced, 77u);
  EXPECT_EQ(found->sequence, 5u);
  EXPECT_FALSE(found->padding);
  EXPECT_TRUE(found->in_place);
  EXPECT_TRUE(padding->padding);
  EXPECT_FALSE(padding->in_place);
  EXPECT_EQ(padding->replaced, kNoPage);
  std::vector<std::byte> bytes(kPageBytes, std::byte{1});
  ASSERT_EQ(nand_->read_pages(1, bytes.data(), 1), 0);
  EXPECT_TRUE(same_bytes(bytes, content(1, 1, 0)));
  EXPECT_FALSE(nand_->spare(2));
}

TEST_F(ImageNandTest, ATornPageStaysTornWhenTheNextOneIsProgrammed) {
  BlockIndex block = 0;
  for (const auto fate : {CutOfBlock::Fate::kDataTorn, CutOfBlock::Fate::kEntryTorn}) {
    const Ppn first = block * CutOfBlock::kBlockPages;
    CutOfBlock faults(block, fate);
    restart(&faults);
    ASSERT_EQ(program(first), 0);
    ASSERT_EQ(program(first + 1), EIO);
    EXPECT_FALSE(nand_->powered());
    EXPECT_EQ(program(first + 2), EIO);
    restart();
    for (int i = 0; i < 2; ++i, restart()) {
      ASSERT_TRUE(nand_->spare(first + 1));
      EXPECT_EQ(nand_->spare(first + 1)->page, kNoPage);
      EXPECT_EQ(nand_->spare(first)->page, first + 100);
      EXPECT_EQ(read(first + 1), kDataDamaged);
      EXPECT_EQ(read(first), 0);
      ASSERT_EQ(program(first + 2 + static_cast<Ppn>(i)), 0);
    }
    ASSERT_EQ(nand_->erase(block), 0);
    EXPECT_FALSE(nand_->spare(first + 1));
    ++block;
  }
}

TEST_F(ImageNandTest, AProgramThatTheCutMissedIsWholeOrNotBegun) {
  CutOfBlock whole(0, CutOfBlock::Fate::kWhole), not_begun(1, CutOfBlock::Fate::kNotBegun);
  restart(&whole);
  ASSERT_EQ(program(0), 0);
  ASSERT_EQ(program(1), EIO);
  restart(&not_begun);
  EXPECT_EQ(nand_->spare(1)->page, 101u);
  EXPECT_EQ(read(1), 0);
  ASSERT_EQ(program(32), 0);
  ASSERT_EQ(program(33), EIO);
  restart();
  EXPECT_FALSE(nand_->spare(33));
  EXPECT_EQ(program(33), 0);
}

TEST_F(ImageNandTest, ABlockWhoseEraseWasCutIsTornInEveryPage) {
  ASSERT_EQ(program(0), 0);
  CutOfBlock faults(0, CutOfBlock::Fate::kWhole);
  restart(&faults);
  ASSERT_EQ(nand_->erase(0), EIO);
  restart();
  for (Ppn at = 0; at < CutOfBlock::kBlockPages; ++at) {
    ASSERT_TRUE(nand_->spare(at));
    EXPECT_EQ(nand_->spare(at)->page, kNoPage);
    EXPECT_EQ(read(at), kDataDamaged);
  }
  ASSERT_EQ(nand_->erase(0), 0);
  EXPECT_FALSE(nand_->spare(0));
  EXPECT_EQ(program(0), 0);
}

TEST_F(ImageNandTest, PagesBeyondTheFlashAreDamaged) {
  std::vector<std::byte> bytes(2 * kPageBytes);
  const auto end = static_cast<Ppn>(geometry_.physical_pages());
  EXPECT_EQ(nand_->read_pages(end, bytes.data(), 1), kDataDamaged);
  EXPECT_EQ(nand_->read_pages(kNoPage - 1, bytes.data(), 1), kDataDamaged);
  EXPECT_EQ(nand_->read_pages(end - 1, bytes.data(), 2), kDataDamaged);
}

}  // namespace
}  // namespace streamfs::ssd
