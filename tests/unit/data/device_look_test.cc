// A DATA that is formatted, or written over, while it is mounted.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "fuse-fs/blockdev/buffer.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/data/health.h"
#include "fuse-fs/data/owned_device.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/pair/pair.h"
#include "tests/unit/data/ram_device.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

constexpr uint64_t kBetweenLooksMs = 10'000;

class DeviceLook : public ::testing::Test {
 protected:
  // Without checksums, which would tell by themselves.
  static Rig::Options unchecked() {
    Rig::Options options = Rig::with_log();
    options.checksums = false;
    return options;
  }
  void SetUp() override {
    file_ = rig_.create("kept");
    ASSERT_TRUE(rig_.write(file_, 0, content_).ok());
    ASSERT_TRUE(rig_.fs().fsync(file_, false).ok());
  }
  // Formatting leaves zeroes.
  void format() {
    const blockdev::BlockBuffer zeroes;
    blockdev::IoBatch batch(rig_.ram());
    batch.write(BlockNo{0}, zeroes.bytes, {});
    ASSERT_TRUE(batch.wait().ok());
  }
  int read_error() {
    std::vector<std::byte> out(content_.size());
    const auto got = rig_.fs().read(file_, 0, out);
    return got.ok() ? 0 : got.error().code;
  }
  void look() {
    rig_.clock().ms += kBetweenLooksMs + 1;
    rig_.fs().maintenance().timer_round();
  }
  std::string reason() { return rig_.fs().status().value().degraded_reason; }

  Rig rig_{unchecked()};
  InodeId file_{};
  const std::vector<std::byte> content_ = std::vector<std::byte>(3 * kBlockSize, std::byte{7});
};

TEST_F(DeviceLook, WhatWasFormattedIsNeitherReadNorWritten) {
  look();
  EXPECT_EQ(read_error(), 0);
  format();
  look();
  EXPECT_NE(reason().find("DATA is not what was mounted"), std::string::npos) << reason();
  EXPECT_EQ(read_error(), EIO);
  EXPECT_EQ(rig_.write(file_, 0, content_).error().code, EROFS);
  EXPECT_EQ(rig_.fs().unmount().error().code, EROFS);
}

TEST_F(DeviceLook, NothingThatWaitedIsWrittenAnyMore) {
  ASSERT_TRUE(rig_.write(file_, 0, content_).ok());
  (void)rig_.create("more");  // for the log and the timer
  format();
  look();
  const uint64_t written = rig_.ram().written_bytes;
  for (int i = 0; i < 3; ++i) {
    rig_.clock().ms += kBetweenLooksMs;
    rig_.fs().maintenance().timer_round();
    rig_.fs().maintenance().reclaim_round();
  }
  EXPECT_FALSE(rig_.fs().fsync(file_, false).ok());
  EXPECT_FALSE(rig_.fs().sync().ok());
  EXPECT_EQ(rig_.ram().written_bytes, written);
}

TEST_F(DeviceLook, WhatBelongsToAnotherFilesystemIsNeitherReadNorWritten) {
  meta::Superblock super = rig_.fs().geometry().super();
  ++super.uuid[0];
  ASSERT_TRUE(pair::write_label(rig_.ram(), meta::make_label(super).label).ok());
  look();
  EXPECT_EQ(read_error(), EIO) << reason();
}

TEST_F(DeviceLook, ADeviceThatNobodyAsksIsLeftAsleep) {
  look();
  look();
  format();
  look();
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(read_error(), 0);  // one request
  look();
  EXPECT_EQ(read_error(), EIO);
}

TEST_F(DeviceLook, ADeviceThatFailsIsNotTakenForAnother) {
  rig_.device().set_faults({.fail_reads_after = 0});
  look();
  EXPECT_EQ(reason(), "");
  rig_.device().set_faults({});
  EXPECT_EQ(read_error(), 0);
}

TEST(OwnedDevice, NoRequestReachesWhatIsLost) {
  Health health(false);
  auto inner = std::make_unique<RamDevice>(64);
  RamDevice& ram = *inner;
  OwnedDevice device(std::move(inner), health);
  blockdev::BlockBuffer block;
  const auto errors = [&] {
    std::vector<int> codes;
    const auto note = [&](const Result<void>& done) {
      codes.push_back(done.ok() ? 0 : done.error().code);
    };
    device.write(BlockNo{1}, block.bytes, {}, note);
    device.read(BlockNo{1}, block.bytes, note);
    note(device.flush());
    note(device.trim(BlockNo{1}, 1));
    return codes;
  };
  EXPECT_EQ(errors(), (std::vector{0, 0, 0, 0}));
  health.lose("formatted");
  EXPECT_EQ(errors(), (std::vector{EIO, EIO, EIO, EIO}));
  EXPECT_EQ(ram.writes, 1);
  EXPECT_EQ(ram.flushes, 1);
  EXPECT_EQ(ram.trimmed_blocks, 1U);
}

}  // namespace
}  // namespace streamfs::data
