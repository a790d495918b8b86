// The answers of a full disk to each caller, without a kernel.
#include "fuse-fs/frontend/full_disk.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/clock.h"
#include "base/types.h"

namespace streamfs::frontend {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;
constexpr InodeId kLossy{7}, kSound{8};

class SetClock final : public Clock {
 public:
  Timestamp now() override { return {}; }
  uint64_t monotonic_ms() override { return milliseconds; }
  std::atomic<uint64_t> milliseconds{1000};
};

void until(const std::function<bool()>& holds) {
  for (int i = 0; i < 10'000 && !holds(); ++i) usleep(1000);
  ASSERT_TRUE(holds());
}

class FullDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    disk.start({
        .free_bytes = [this] { return free_bytes.load(); },
        .limit_dirty = [this](std::optional<uint64_t> bytes) { limit = bytes.value_or(0); },
        .expire_attributes =
            [this](InodeId id) {
              if (id == kLossy) ++expired;
            },
    });
  }

  SetClock clock;
  std::atomic<uint64_t> free_bytes{0}, limit{1};
  std::atomic<int> expired{0};
  FullDisk disk{clock};  // last: its thread uses the others
};

TEST_F(FullDiskTest, WhoLostNothingIsToldNothing) {
  EXPECT_FALSE(disk.ask(kLossy));
  disk.not_stored(kSound, 0);
  EXPECT_FALSE(disk.ask(kLossy));
  EXPECT_FALSE(disk.is_losing(kLossy));
}

TEST_F(FullDiskTest, ALossIsToldToOneWrite) {
  disk.not_stored(kLossy, 4096);
  until([this] { return expired == 1; });
  EXPECT_TRUE(disk.is_losing(kLossy));
  EXPECT_TRUE(disk.ask(kLossy));
  EXPECT_FALSE(disk.is_losing(kLossy));
  EXPECT_FALSE(disk.ask(kLossy));
  disk.not_stored(kLossy, 4096);  // was under way
  EXPECT_FALSE(disk.ask(kLossy));
  clock.milliseconds += 2000;
  disk.not_stored(kLossy, 4096);
  until([this] { return expired == 2; });
  EXPECT_TRUE(disk.ask(kLossy));
}

TEST_F(FullDiskTest, NoHoleIsLeftWherePagesWereDropped) {
  EXPECT_FALSE(disk.is_beyond_loss(kLossy, 8192));
  disk.not_stored(kLossy, 4096);
  EXPECT_TRUE(disk.is_beyond_loss(kLossy, 8192));
  EXPECT_FALSE(disk.is_beyond_loss(kLossy, 0));
  EXPECT_TRUE(disk.ask(kLossy));
  EXPECT_TRUE(disk.is_beyond_loss(kLossy, 8192));
  clock.milliseconds += 2000;
  EXPECT_FALSE(disk.is_beyond_loss(kLossy, 8192));
}

TEST_F(FullDiskTest, PagesOfOneLossExpireAttributesOnce) {
  for (int page = 0; page < 5; ++page) disk.not_stored(kLossy, 4096);
  disk.not_stored(kSound, 0);
  EXPECT_TRUE(disk.ask(kSound));
  until([this] { return expired == 1; });
  EXPECT_TRUE(disk.ask(kLossy));
  EXPECT_EQ(expired, 1);
}

TEST_F(FullDiskTest, AnOldLossIsNotToldToANewWriterWhoHasSpace) {
  disk.not_stored(kLossy, 4096);
  clock.milliseconds += 3000;
  free_bytes = kGib;
  EXPECT_FALSE(disk.ask(kLossy));
  disk.not_stored(kLossy, 4096);
  disk.forget(kLossy);
  EXPECT_FALSE(disk.ask(kLossy));
}

TEST_F(FullDiskTest, TheKernelMayHoldLessDirtyAsTheFreeSpaceShrinks) {
  until([this] { return limit == 32U << 20; });
  free_bytes = uint64_t{1} << 50;
  disk.wrote(uint64_t{1} << 30);
  until([this] { return limit == 0; });
}

}  // namespace
}  // namespace streamfs::frontend
