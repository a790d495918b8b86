// eMMC contexts as pStreams: commands beside vectors from JESD84-B51 and include/linux/mmc/core.h,
// and the device beside the emulated card, which has constants of its own.
#include "fuse-fs/blockdev/mmc_device.h"

#include <gtest/gtest.h>
#include <linux/mmc/ioctl.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/emulated_device.h"
#include "fuse-fs/blockdev/mmc_command.h"
#include "ssd/emmc_card.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/presets.h"
#include "tests/support/temporary.h"

namespace streamfs::blockdev {
namespace {

constexpr unsigned kR1Ac = 0x95, kR1bAc = 0x49d, kR1Adtc = 0xb5;

TEST(MmcContextCommand, SetBlockCountHasTheContextInBits25To28) {
  const mmc_ioc_cmd command = mmc::set_block_count(8, 3);
  EXPECT_EQ(command.opcode, 23u);
  EXPECT_EQ(command.arg, 0x0600'0008u);
  EXPECT_EQ(command.flags, kR1Ac);
  EXPECT_EQ(command.write_flag, 0);
  EXPECT_EQ(command.blocks, 0u);
  EXPECT_EQ(mmc::set_block_count(0xffff, 15).arg, 0x1e00'ffffu);
  EXPECT_EQ(mmc::set_block_count(512, 0).arg, 512u);
}

TEST(MmcContextCommand, WriteMultipleBlockIsAddressedBySectors) {
  const std::vector<std::byte> bytes(2 * kBlockSize);
  const mmc_ioc_cmd command = mmc::write_sectors(0x0012'3458, bytes);
  EXPECT_EQ(command.opcode, 25u);
  EXPECT_EQ(command.arg, 0x0012'3458u);
  EXPECT_EQ(command.flags, kR1Adtc);
  EXPECT_EQ(command.write_flag, 1);
  EXPECT_EQ(command.blksz, 512u);
  EXPECT_EQ(command.blocks, 16u);
  EXPECT_EQ(command.data_ptr, reinterpret_cast<uintptr_t>(bytes.data()));
}

TEST(MmcContextCommand, AContextIsConfiguredByItsByteOfContextConf) {
  for (const auto& [command, argument] : {std::pair(mmc::open_context(1), 0x0325'0100u),
                                          std::pair(mmc::open_context(15), 0x0333'0100u),
                                          std::pair(mmc::close_context(4), 0x0328'0000u)}) {
    EXPECT_EQ(command.opcode, 6u);
    EXPECT_EQ(command.arg, argument);
    EXPECT_EQ(command.flags, kR1bAc);
    EXPECT_EQ(command.write_flag, 1);
  }
}

TEST(MmcContextCommand, TheNumberOfContextsIsInTheLowHalfOfByte496) {
  mmc::ExtCsd bytes{};
  EXPECT_EQ(mmc::contexts_of(bytes), 0);
  bytes[496] = 0x35;
  EXPECT_EQ(mmc::contexts_of(bytes), 5);
}

TEST(MmcContextCommand, ErrorBitsOfTheStatusAreErrors) {
  const auto is_error = [](uint32_t status) {
    mmc_ioc_cmd answered{};
    answered.response[0] = status;
    return mmc::is_error(answered);
  };
  EXPECT_FALSE(is_error(0x0000'0900));  // ready, in the transfer state
  EXPECT_FALSE(is_error(0x0200'0940));  // locked; an exception event
  for (const unsigned bit : {31u, 30u, 29u, 28u, 27u, 26u, 24u, 23u, 22u, 21u, 20u, 19u, 7u})
    EXPECT_TRUE(is_error(0x900 | 1u << bit)) << bit;
}

// An emulated card on a 16 MiB image; records the sequences of commands that reach it.
class MmcDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ssd::GeometryRequest request = ssd::emmc_request();
    request.user_bytes = 16 * kMiB;
    request.spare = 0.4;
    request.pages_per_block = 32;
    const auto made = ssd::Image::create(path_, *ssd::plan_geometry(request), false);
    ASSERT_TRUE(made.ok()) << made.error().message();
  }

  void open(bool read_only = false) {
    OpenOptions options;
    options.read_only = read_only;
    auto beneath = EmulatedDevice::open(path_, options);
    ASSERT_TRUE(beneath.ok()) << beneath.error().message();
    card_ = std::make_unique<ssd::EmmcCard>((*beneath)->ssd());
    auto device = MmcDevice::make({.beneath = std::move(*beneath),
                                   .send = [this](auto sequence) { return send(sequence); },
                                   .address = 7,
                                   .maintenance = nullptr,
                                   .read_only = read_only});
    ASSERT_TRUE(device.ok()) << device.error().message();
    device_ = std::move(*device);
  }

  int send(std::span<mmc_ioc_cmd> sequence) {
    sent_.emplace_back(sequence.begin(), sequence.end());
    if (refuses(sequence.front())) {
      sequence.front().response[0] = 0x8'0900;  // ERROR
      return 0;
    }
    if (const int error = card_->execute(sequence); error != 0) return error;
    for (mmc_ioc_cmd& command : sequence) {
      if (command.opcode == 13 && busy_answers_ > 0) {
        --busy_answers_;
        command.response[0] = 7u << 9;  // programming
      }
    }
    return 0;
  }

  // Whether the command is for the context that is refused: its configuration or its data.
  bool refuses(const mmc_ioc_cmd& command) const {
    if (refused_context_ == 0) return false;
    return (command.opcode == 6 && (command.arg >> 16 & 0xff) == 36 + refused_context_) ||
           (command.opcode == 23 && command.arg >> 25 == refused_context_);
  }

  std::vector<uint32_t> arguments_of(uint32_t opcode) const {
    std::vector<uint32_t> found;
    for (const auto& sequence : sent_)
      for (const mmc_ioc_cmd& command : sequence)
        if (command.opcode == opcode) found.push_back(command.arg);
    return found;
  }

  Result<void> write(uint64_t block, ConstBytes bytes, uint16_t stream) {
    IoBatch batch(*device_);
    batch.write(BlockNo{block}, bytes, {device_->placement(PStreamId{stream}), VStreamId{9}});
    return batch.wait();
  }
  std::vector<std::byte> read(uint64_t block, uint64_t blocks) {
    std::vector<std::byte> bytes(blocks * kBlockSize);
    IoBatch batch(*device_);
    batch.read(BlockNo{block}, bytes);
    EXPECT_TRUE(batch.wait().ok());
    return bytes;
  }
  uint64_t written(uint16_t stream) { return device_->stats()->streams.at(stream).written_bytes; }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.file("emmc");
  std::vector<std::vector<mmc_ioc_cmd>> sent_;
  int busy_answers_ = 0;
  uint32_t refused_context_ = 0;
  std::unique_ptr<ssd::EmmcCard> card_;
  std::unique_ptr<MmcDevice> device_;
};

TEST_F(MmcDeviceTest, ContextsAreOpenedForWritingAndClosedAtTheEnd) {
  open();
  EXPECT_EQ(device_->info().pstream_count, 5);
  EXPECT_EQ(device_->info().mechanism, "emulated eMMC contexts");
  EXPECT_EQ(arguments_of(6),
            (std::vector<uint32_t>{0x0325'0000, 0x0325'0100, 0x0326'0000, 0x0326'0100, 0x0327'0000,
                                   0x0327'0100, 0x0328'0000, 0x0328'0100}));
  sent_.clear();
  device_.reset();
  EXPECT_EQ(arguments_of(6),
            (std::vector<uint32_t>{0x0325'0000, 0x0326'0000, 0x0327'0000, 0x0328'0000}));
}

TEST_F(MmcDeviceTest, AWriteOfAStreamIsOneSequenceOfCmd23AndCmd25) {
  open();
  const std::vector<std::byte> bytes = content(40, 3, 1);
  sent_.clear();
  ASSERT_TRUE(write(40, bytes, 3).ok());
  ASSERT_EQ(sent_.size(), 2u);
  ASSERT_EQ(sent_[0].size(), 2u);
  EXPECT_EQ(sent_[0][0].opcode, 23u);
  EXPECT_EQ(sent_[0][0].arg, 0x0600'0018u);
  EXPECT_EQ(sent_[0][1].opcode, 25u);
  EXPECT_EQ(sent_[0][1].arg, 320u);
  EXPECT_EQ(sent_[1][0].opcode, 13u);
  EXPECT_EQ(sent_[1][0].arg, 0x0007'0000u);
  EXPECT_EQ(written(3), bytes.size());
  EXPECT_TRUE(same_bytes(read(40, 3), bytes));
}

TEST_F(MmcDeviceTest, DataOfTheDefaultStreamSendsNoCommand) {
  open();
  sent_.clear();
  ASSERT_TRUE(write(8, content(8, 2, 1), 0).ok());
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(written(0), 2 * kBlockSize);
  EXPECT_TRUE(same_bytes(read(8, 2), content(8, 2, 1)));
}

TEST_F(MmcDeviceTest, AWriteAboveTheKernelsLimitIsSeveralCommands) {
  open();
  sent_.clear();
  const std::vector<std::byte> bytes = content(0, 160, 4);  // 640 KiB
  ASSERT_TRUE(write(0, bytes, 1).ok());
  EXPECT_EQ(arguments_of(23), (std::vector<uint32_t>{0x0200'0200, 0x0200'0200, 0x0200'0100}));
  EXPECT_EQ(arguments_of(25), (std::vector<uint32_t>{0, 512, 1024}));
  EXPECT_TRUE(same_bytes(read(0, 160), bytes));
}

TEST_F(MmcDeviceTest, AFlushClosesWrittenContextsAndOpensThemAgain) {
  open();
  ASSERT_TRUE(write(0, content(0, 1, 1), 2).ok());
  sent_.clear();
  ASSERT_TRUE(device_->flush().ok());
  EXPECT_EQ(arguments_of(6), (std::vector<uint32_t>{0x0326'0000, 0x0326'0100}));
  sent_.clear();
  ASSERT_TRUE(device_->flush().ok());
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(device_->stats()->flushes, 2u);
  EXPECT_TRUE(write(0, content(0, 1, 2), 2).ok());
}

TEST_F(MmcDeviceTest, AWriteWaitsUntilTheCardIsReady) {
  open();
  sent_.clear();
  busy_answers_ = 3;
  ASSERT_TRUE(write(0, content(0, 1, 1), 1).ok());
  EXPECT_EQ(arguments_of(13).size(), 4u);
}

TEST_F(MmcDeviceTest, AWriteAfterAResetOfTheCardOpensItsContextAgain) {
  open();
  mmc_ioc_cmd close = mmc::close_context(1);
  ASSERT_EQ(card_->execute({&close, 1}), 0);
  ASSERT_TRUE(write(0, content(0, 1, 2), 1).ok());
  EXPECT_EQ(written(1), kBlockSize);
  EXPECT_TRUE(same_bytes(read(0, 1), content(0, 1, 2)));
}

TEST_F(MmcDeviceTest, ARefusedCommandFailsItsWriteOnly) {
  open();
  ASSERT_TRUE(write(0, content(0, 1, 1), 1).ok());
  refused_context_ = 1;
  EXPECT_EQ(write(0, content(0, 1, 2), 1).error().code, EIO);
  EXPECT_EQ(device_->flush().error().code, EIO);
  EXPECT_EQ(device_->stats()->flushes, 1u);  // the device beneath is flushed all the same
  EXPECT_TRUE(same_bytes(read(0, 1), content(0, 1, 1)));
  EXPECT_TRUE(write(0, content(0, 1, 3), 2).ok());
  EXPECT_TRUE(same_bytes(read(0, 1), content(0, 1, 3)));
  refused_context_ = 0;
  EXPECT_TRUE(device_->flush().ok());
}

TEST_F(MmcDeviceTest, BeforeThePowerGoesContextsAreClosed) {
  open();
  ASSERT_TRUE(write(0, content(0, 1, 1), 2).ok());
  sent_.clear();
  ASSERT_TRUE(device_->prepare_poweroff({}).ok());
  EXPECT_EQ(arguments_of(6), (std::vector<uint32_t>{0x0326'0000, 0x0326'0100}));
}

TEST_F(MmcDeviceTest, WhatLiesBeyondTheCardIsRefusedWithoutACommand) {
  open();
  sent_.clear();
  EXPECT_EQ(write(16 * kMiB / kBlockSize - 1, content(0, 2, 1), 1).error().code, EINVAL);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(MmcDeviceTest, OpenForReadingItOpensNoContext) {
  open(true);
  EXPECT_TRUE(arguments_of(6).empty());
  EXPECT_EQ(write(0, content(0, 1, 1), 1).error().code, EROFS);
  device_.reset();
  EXPECT_TRUE(arguments_of(6).empty());
}

TEST_F(MmcDeviceTest, ACardWithoutContextsIsNoDevice) {
  auto beneath = EmulatedDevice::open(path_, {});
  ASSERT_TRUE(beneath.ok());
  const auto device = MmcDevice::make(
      {.beneath = std::move(*beneath), .send = [](auto) { return 0; }});  // EXT_CSD of zeroes
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, EOPNOTSUPP);
}

TEST_F(MmcDeviceTest, ItsNameOpensImagesOfEmmcsOnly) {
  const auto device = open_device("mmc:" + path_, {});
  ASSERT_TRUE(device.ok()) << device.error().message();
  EXPECT_EQ((*device)->info().pstream_count, 5);
  const std::string other = directory_.file("page-map");
  ssd::GeometryRequest request;
  request.user_bytes = 16 * kMiB;
  ASSERT_TRUE(ssd::Image::create(other, *ssd::plan_geometry(request), false).ok());
  EXPECT_EQ(open_device("mmc:" + other, {}).error().code, EINVAL);
  EXPECT_EQ(open_device("mmc:" + directory_.file("none"), {}).error().code, ENOENT);
}

// The card beside the standard, without the device's encoder.
TEST_F(MmcDeviceTest, TheCardRefusesWhatTheStandardRefuses) {
  open();
  std::vector<std::byte> bytes = content(0, 1, 1);
  const auto answer = [&](uint32_t cmd23, uint32_t sector, unsigned blksz, unsigned blocks) {
    std::vector<mmc_ioc_cmd> sequence(2);
    sequence[0].opcode = 23;
    sequence[0].arg = cmd23;
    sequence[1].opcode = 25;
    sequence[1].arg = sector;
    sequence[1].blksz = blksz;
    sequence[1].blocks = blocks;
    sequence[1].data_ptr = reinterpret_cast<uintptr_t>(bytes.data());
    EXPECT_EQ(card_->execute(sequence), 0);
    return sequence[1].response[0];
  };
  EXPECT_EQ(answer(0x0400'0008, 0, 512, 8), 0x900u);
  EXPECT_EQ(answer(0x0400'0010, 0, 512, 8), 0x8'0900u);         // another number of blocks
  EXPECT_EQ(answer(0x0a00'0008, 0, 512, 8), 0x8'0900u);         // context 5 cannot be open
  EXPECT_EQ(answer(0x0400'0008, 4, 512, 8), 0x4000'0900u);      // misaligned
  EXPECT_EQ(answer(0x0400'0008, 32768, 512, 8), 0x8000'0900u);  // out of range
  EXPECT_EQ(answer(0x0400'0008, 0, 4096, 8), 0x2000'0900u);     // block length
  mmc_ioc_cmd command{};
  command.opcode = 6;
  command.arg = 0x0329'0100;  // CONTEXT_CONF of a context that the card does not have
  EXPECT_EQ(card_->execute({&command, 1}), 0);
  EXPECT_EQ(command.response[0], 0x980u);
  command.opcode = 1;
  EXPECT_EQ(card_->execute({&command, 1}), ETIMEDOUT);
}

}  // namespace
}  // namespace streamfs::blockdev
