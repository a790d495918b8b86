// The use that each kind of device makes of idle time.
#include "fuse-fs/blockdev/idle.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/nvme/command.h"
#include "ssd/ssd.h"
#include "tests/unit/blockdev/nvme_fixture.h"

namespace streamfs::blockdev {
namespace {

using nvme::opcode::kSetFeatures;

constexpr EmulatedNvme kPermissiveSsd{.mechanism = nvme::Mechanism::kFdp, .permissive = true};

class IdleTest : public NvmeTest {
 protected:
  std::vector<uint32_t> told() const {  // Set Features, non-operational power state
    std::vector<uint32_t> values;
    for (const nvme::Command& command : log_.admin)
      if (command.opcode == kSetFeatures) values.push_back(command.cdw11());
    return values;
  }
  // An emulated SSD whose blocks all hold some dead pages.
  std::unique_ptr<Device> worn() {
    make_ssd();
    auto device = open_device("emu:" + directory_ + "/ssd", {}).value();
    std::mt19937 random(1);
    for (uint64_t at = 0; at < kBlocks; at += 32) EXPECT_TRUE(put(*device, at, 32, 1, 0).ok());
    for (int i = 0; i < 20'000; ++i) EXPECT_TRUE(put(*device, random() % kBlocks, 1, 2, 0).ok());
    return device;
  }
  uint64_t free_blocks() const { return ssd::observe_stats(directory_ + "/ssd")->free_blocks; }
};

TEST_F(IdleTest, TheEmulatedSsdCollectsGarbageAndItsPressureFalls) {
  const auto device = worn();
  ASSERT_EQ(device->capabilities().means, IdleMeans::kInCall);
  const Pressure before = device->pressure();
  const uint64_t free = free_blocks();
  ASSERT_NE(before, Pressure::kNone);
  const auto work = device->begin_idle({});
  ASSERT_TRUE(work.ok());
  EXPECT_TRUE(work->finished);
  EXPECT_GT(work->erases, 0u);
  EXPECT_GT(free_blocks(), free);
  EXPECT_LT(device->pressure(), before);
  EXPECT_EQ(ssd::observe_stats(directory_ + "/ssd")->idle_gc_bytes, work->copied_bytes);
}

TEST_F(IdleTest, TheEmulatedSsdStopsBeforeTheStepItIsToldTo) {
  const auto device = worn();
  int asked = 0;
  const auto some = device->begin_idle({.stop = [&] { return ++asked > 2; }});
  EXPECT_FALSE(some->finished);
  EXPECT_EQ(asked, 3);
  const auto none = device->begin_idle({.stop = [] { return true; }});
  EXPECT_EQ(none->copied_bytes, 0u);
}

TEST_F(IdleTest, PreparedForPowerOffItIsFlushedAndHasItsFreeBlocks) {
  const auto device = worn();
  const uint64_t flushes = device->stats()->flushes;
  EXPECT_TRUE(device->prepare_poweroff({})->finished);
  EXPECT_EQ(device->stats()->flushes, flushes + 1);
  EXPECT_GT(ssd::observe_stats(directory_ + "/ssd")->idle_gc_bytes, 0u);
}

TEST_F(IdleTest, PermissiveModeIsOnInIdleTimeOnly) {
  const auto ssd = device(kPermissiveSsd);
  ASSERT_EQ(ssd->capabilities().means, IdleMeans::kByItself);
  ASSERT_TRUE(ssd->begin_idle({}).ok());
  ASSERT_TRUE(ssd->begin_idle({}).ok());
  EXPECT_EQ(told(), std::vector<uint32_t>{1});
  ASSERT_TRUE(ssd->end_idle().ok());
  ASSERT_TRUE(ssd->end_idle().ok());
  EXPECT_EQ(told(), (std::vector<uint32_t>{1, 0}));
}

TEST_F(IdleTest, PermissiveModeThatIsOnAlreadyStaysOn) {
  auto ssd = device(kPermissiveSsd);
  ASSERT_TRUE(ssd->controller()
                  .admin(nvme::set_features(nvme::kFeatureNonOperational, nvme::kPermissive), {})
                  .ok());
  log_.admin.clear();
  ASSERT_TRUE(ssd->begin_idle({}).ok());
  ssd.reset();
  EXPECT_TRUE(told().empty());
}

TEST_F(IdleTest, AtTheEndPermissiveModeIsPutBack) {
  auto ssd = device(kPermissiveSsd);
  ASSERT_TRUE(ssd->begin_idle({}).ok());
  ssd.reset();
  EXPECT_EQ(told(), (std::vector<uint32_t>{1, 0}));
}

TEST_F(IdleTest, AControllerWithoutPermissiveModeIsToldNothing) {
  const auto ssd = device(kFdpSsd);
  EXPECT_EQ(ssd->capabilities().means, IdleMeans::kNone);
  EXPECT_EQ(ssd->pressure(), Pressure::kUnknown);
  EXPECT_TRUE(ssd->begin_idle({})->finished);
  EXPECT_TRUE(ssd->end_idle().ok());
  EXPECT_TRUE(told().empty());
  EXPECT_TRUE(device(kPermissiveSsd, true)->begin_idle({}).ok());
  EXPECT_TRUE(told().empty()) << "opened for reading";
}

}  // namespace
}  // namespace streamfs::blockdev
