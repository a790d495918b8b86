// The promises of device.h, for each kind of device; and the decorator that breaks them on purpose.
#include "fuse-fs/blockdev/device.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/io_sizes.h"
#include "base/log_histogram.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/counted_device.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/blockdev/final_flush_device.h"
#include "fuse-fs/blockdev/io_engine.h"
#include "fuse-fs/blockdev/stats_json.h"
#include "fuse-fs/uring/ring.h"
#include "ssd/geometry.h"
#include "ssd/image.h"

namespace streamfs::blockdev {
namespace {

constexpr uint64_t kBlocks = 4096;

std::vector<std::byte> filled(uint64_t blocks, int value) {
  return std::vector<std::byte>(blocks * kBlockSize, static_cast<std::byte>(value));
}

Result<void> put(Device& device, uint64_t block, ConstBytes bytes, uint16_t stream = 0) {
  IoBatch batch(device);
  batch.write(BlockNo{block}, bytes, {device.placement(PStreamId{stream}), VStreamId{stream}});
  return batch.wait();
}

std::vector<std::byte> get(Device& device, uint64_t block, uint64_t blocks) {
  std::vector<std::byte> bytes(blocks * kBlockSize);
  IoBatch batch(device);
  batch.read(BlockNo{block}, bytes);
  const Result<void> done = batch.wait();
  EXPECT_TRUE(done.ok()) << done.error().message();
  return bytes;
}

class DeviceTest : public ::testing::Test {
 protected:
  DeviceTest() {
    const char* base = std::getenv("TMPDIR");
    directory_ = std::string(base != nullptr ? base : "/tmp") + "/streamfs-blockdev.XXXXXX";
    SFS_ASSERT(mkdtemp(directory_.data()) != nullptr);
    const int fd = open((directory_ + "/file").c_str(), O_CREAT | O_RDWR, 0600);
    SFS_ASSERT(fd >= 0 && ftruncate(fd, kBlocks * kBlockSize) == 0);
    close(fd);
    ssd::GeometryRequest request;
    request.user_bytes = kBlocks * kBlockSize;
    request.spare = 0.3;
    request.streams = 4;
    request.pages_per_block = 32;
    const Result<ssd::Geometry> geometry = ssd::plan_geometry(request);
    SFS_ASSERT(geometry.ok());
    SFS_ASSERT(ssd::Image::create(directory_ + "/ssd", *geometry, false).ok());
  }
  ~DeviceTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  std::string name_of(const std::string& kind) const {
    if (kind == "file") return directory_ + "/file";
    const std::string ssd = directory_ + "/ssd";
    return (kind == "emulated" ? "emu:" : kind == "nvme_fdp" ? "nvme:fdp:" : "nvme:streams:") + ssd;
  }

  std::unique_ptr<Device> open_kind(const std::string& kind) const {
    const std::string data = name_of(kind);
    Result<std::unique_ptr<Device>> device = open_device(data, {.wait_seconds = 0});
    EXPECT_TRUE(device.ok()) << device.error().message();
    return device.ok() ? std::move(*device) : nullptr;
  }

  std::string directory_;
};

class EveryDevice : public DeviceTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, EveryDevice,
                         ::testing::Values("file", "emulated", "nvme_streams", "nvme_fdp"),
                         [](const auto& p) { return std::string(p.param); });

TEST_F(DeviceTest, AFileThatBecameLongerIsUsedToItsEndOnceMeasured) {
  const auto device = open_kind("file");
  std::filesystem::resize_file(directory_ + "/file", 2 * kBlocks * kBlockSize + 100);
  const auto block = filled(1, 7);
  EXPECT_EQ(put(*device, 2 * kBlocks - 1, block).error().code, EINVAL);
  EXPECT_EQ(device->measure().value(), 2 * kBlocks);
  ASSERT_TRUE(put(*device, 2 * kBlocks - 1, block).ok());
  EXPECT_EQ(get(*device, 2 * kBlocks - 1, 1), block);
  EXPECT_EQ(put(*device, 2 * kBlocks, block).error().code, EINVAL);
  EXPECT_EQ(open_kind("emulated")->measure().value(), kBlocks);
}

TEST_F(DeviceTest, AnEmulatedSsdTellsHowItCollectsGarbage) {
  const auto device = open_kind("emulated");
  EXPECT_EQ(device->info().gc_mode, "own");
  EXPECT_EQ(device->info().victim, "greedy");
  const auto stats = device->stats();
  EXPECT_NEAR(device->info().spare,
              static_cast<double>(stats->physical_bytes) / (kBlocks * kBlockSize) - 1, 1e-9);
  EXPECT_EQ(open_kind("file")->info().gc_mode, "");
  EXPECT_EQ(open_kind("file")->info().victim, "");
  EXPECT_EQ(open_kind("file")->info().spare, 0);
}

TEST_P(EveryDevice, KeepsWhatRandomConcurrentWritesAndTrimsLeftAcrossReopening) {
  auto device = open_kind(GetParam());
  EXPECT_TRUE(std::string(GetParam()).starts_with(device->info().kind));
  EXPECT_EQ(device->info().capacity_blocks, kBlocks);
  EXPECT_FALSE(device->info().identity.empty());
  const std::string identity = device->info().identity;
  std::vector<int> model(kBlocks);
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<std::byte>> buffers;
    {
      IoBatch batch(*device);
      std::set<uint64_t> touched;
      for (int i = 0; i < 20; ++i) {
        const uint64_t blocks = 1 + random() % 16, first = random() % (kBlocks / 16) * 16;
        if (!touched.insert(first).second) continue;
        const int value = static_cast<int>(1 + random() % 255);
        buffers.push_back(filled(blocks, value));
        batch.write(BlockNo{first}, buffers.back(), {device->placement(PStreamId{1}), {}});
        std::fill_n(model.begin() + static_cast<ptrdiff_t>(first), blocks, value);
      }
      ASSERT_TRUE(batch.wait().ok());
    }
    const uint64_t first = random() % (kBlocks - 8);
    ASSERT_TRUE(device->trim(BlockNo{first}, 8).ok());
    std::fill_n(model.begin() + static_cast<ptrdiff_t>(first), 8, 0);
  }
  ASSERT_TRUE(device->flush().ok());
  device.reset();
  device = open_kind(GetParam());
  EXPECT_EQ(device->info().identity, identity);
  const std::vector<std::byte> all = get(*device, 0, kBlocks);
  for (uint64_t block = 0; block < kBlocks; ++block) {
    const auto expected = filled(1, model[block]);
    ASSERT_EQ(std::memcmp(&all[block * kBlockSize], expected.data(), kBlockSize), 0) << block;
  }
}

TEST_P(EveryDevice, UnalignedBuffersWork) {
  const auto device = open_kind(GetParam());
  std::vector<std::byte> buffer(3 * kBlockSize + 1);
  const Bytes odd = Bytes(buffer).subspan(1);
  std::fill(odd.begin(), odd.end(), std::byte{42});
  ASSERT_TRUE(put(*device, 7, odd).ok());
  std::fill(odd.begin(), odd.end(), std::byte{0});
  IoBatch batch(*device);
  batch.read(BlockNo{7}, odd);
  ASSERT_TRUE(batch.wait().ok());
  EXPECT_EQ(std::memcmp(odd.data(), filled(3, 42).data(), odd.size()), 0);
}

TEST_P(EveryDevice, RefusesWhatLiesBeyondItsEnd) {
  const auto device = open_kind(GetParam());
  EXPECT_EQ(put(*device, kBlocks - 1, filled(2, 1)).error().code, EINVAL);
  EXPECT_EQ(put(*device, UINT64_MAX, filled(1, 1)).error().code, EINVAL);
  EXPECT_EQ(device->trim(BlockNo{kBlocks}, 1).error().code, EINVAL);
  EXPECT_TRUE(put(*device, kBlocks - 1, filled(1, 1)).ok());
}

TEST_P(EveryDevice, HasOneHolderAndWaitsForItToLeave) {
  auto holder = open_kind(GetParam());
  const std::string data = name_of(GetParam());
  EXPECT_EQ(open_device(data, {.wait_seconds = 0}).error().code, EBUSY);
  std::thread leaving([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    holder.reset();
  });
  EXPECT_TRUE(open_device(data, {.wait_seconds = 10}).ok());
  leaving.join();
}

TEST_P(EveryDevice, OpenForReadingRefusesChanges) {
  (void)open_kind(GetParam());  // made by now
  const auto device = open_device(name_of(GetParam()), {.wait_seconds = 0, .read_only = true});
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(put(**device, 0, filled(1, 1)).error().code, EROFS);
  EXPECT_EQ((*device)->trim(BlockNo{0}, 1).error().code, EROFS);
  EXPECT_EQ(get(**device, 0, 1), filled(1, 0));
}

TEST_P(EveryDevice, CountsWhatItWasSent) {
  const auto device = open_kind(GetParam());
  ASSERT_TRUE(put(*device, 0, filled(10, 1)).ok());
  ASSERT_TRUE(device->flush().ok());
  ASSERT_TRUE(device->trim(BlockNo{0}, 4).ok());
  (void)get(*device, 0, 2);
  const DeviceStats stats = *device->stats();
  EXPECT_EQ(stats.written_bytes, 10 * kBlockSize);
  EXPECT_EQ(stats.read_bytes, 2 * kBlockSize);
  EXPECT_EQ(stats.trimmed_bytes, 4 * kBlockSize);
  EXPECT_EQ(stats.flushes, 1u);
  const nlohmann::json json = to_json(stats);
  EXPECT_EQ(json["written_bytes"], 10 * kBlockSize);
  EXPECT_EQ(json["nand_bytes"].is_null(), !stats.nand_known);
  EXPECT_EQ(json["erases"].is_null(), !stats.nand_known || !stats.inside_known);
}

TEST_F(DeviceTest, ThePlacementIsTheStreamOfTheEmulatedDevice) {
  const auto device = open_kind("emulated");
  EXPECT_EQ(device->placement(PStreamId{0}), Placement{});
  EXPECT_EQ(device->placement(PStreamId{3}), (Placement{1, 3}));
  EXPECT_EQ(device->placement(PStreamId{4}), Placement{});
  ASSERT_TRUE(put(*device, 0, filled(5, 1), 3).ok());
  const DeviceStats stats = *device->stats();
  EXPECT_EQ(stats.streams.at(3).written_bytes, 5 * kBlockSize);
  EXPECT_EQ(stats.streams.at(0).written_bytes, 0u);
}

TEST_F(DeviceTest, InRealTimeAnEmulatedSsdAnswersAsLateAsItsFlash) {
  (void)open_kind("emulated");
  const auto device = open_device("emu:" + directory_ + "/ssd", {.real_time = 2000});
  ASSERT_TRUE(device.ok());
  using std::chrono::milliseconds;
  const auto lasts = [](auto action) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(action().ok());
    return std::chrono::steady_clock::now() - start;
  };
  // The host interface takes 10 µs a request and 1.3 µs a page.
  EXPECT_GT(lasts([&] { return put(**device, 0, filled(4, 1), 0); }), milliseconds(30));
  EXPECT_GT(lasts([&] { return (*device)->flush(); }), milliseconds(19));
  std::vector<std::byte> bytes(kBlockSize);
  IoBatch batch(**device);
  const auto read = [&] {
    batch.read(BlockNo{0}, bytes);
    return batch.wait();
  };
  EXPECT_GT(lasts(read), milliseconds(90));  // 25 µs of a die, 13.6 of its channel, 10
  EXPECT_EQ(open_device(directory_ + "/file", {.real_time = 1}).error().code, EINVAL);
}

TEST_F(DeviceTest, WhatIsNotADeviceIsRefused) {
  EXPECT_EQ(open_device(directory_ + "/none", {}).error().code, ENOENT);
  EXPECT_EQ(open_device(directory_, {}).error().code, ENOTBLK);
  EXPECT_EQ(open_device("/dev/null", {}).error().code, ENOTBLK);
  EXPECT_EQ(open_device("emu:" + directory_ + "/none", {}).error().code, ENOENT);
  EXPECT_EQ(open_device("emu:" + directory_ + "/file", {}).error().code, EINVAL);
}

void drive_all() {
  while (uring::drive()) {
  }
}

TEST_F(DeviceTest, TheRingContinuesShortTransfersAndReportsTheEnd) {
  const int fd = open((directory_ + "/file").c_str(), O_RDWR);
  {
    const auto engine = make_io_engine(fd, 4);
    std::vector<std::byte> bytes(2 * kBlockSize);
    int code = -1;
    engine->read((kBlocks - 1) * kBlockSize, bytes,
                 [&](Result<void> done) { code = done.ok() ? 0 : done.error().code; });
    ASSERT_TRUE(engine->fdatasync().ok());
    drive_all();
    EXPECT_EQ(code, EIO);
    int finished = 0;
    for (int i = 0; i < 1000; ++i)
      engine->write(static_cast<uint64_t>(i) * kBlockSize, Bytes(bytes).first(kBlockSize), 0,
                    [&](Result<void> done) { finished += done.ok() ? 1 : 0; });
    drive_all();
    EXPECT_EQ(finished, 1000);
  }
  close(fd);
}

TEST_F(DeviceTest, ACompletionMayIssueMoreThanTheQueueHolds) {
  const int fd = open((directory_ + "/file").c_str(), O_RDWR);
  {
    const auto engine = make_io_engine(fd, 2);
    const auto bytes = filled(1, 9);
    int finished = 0;
    for (int i = 0; i < 2; ++i)
      engine->write(0, bytes, 0, [&](Result<void>) {
        for (uint64_t j = 0; j < 10; ++j)
          engine->write(j * kBlockSize, bytes, 0, [&](Result<void>) { ++finished; });
      });
    drive_all();
    EXPECT_EQ(finished, 20);
  }
  close(fd);
}

TEST_F(DeviceTest, InjectedErrorsArriveWhenAsked) {
  FaultyDevice device(open_kind("file"), false);
  device.set_faults({.fail_writes_after = 2, .tear_failing_writes = true});
  EXPECT_TRUE(put(device, 0, filled(1, 1)).ok());
  EXPECT_TRUE(put(device, 1, filled(1, 1)).ok());
  EXPECT_EQ(put(device, 2, filled(4, 1)).error().code, EIO);
  EXPECT_EQ(get(device, 2, 2), filled(2, 1));
  EXPECT_EQ(get(device, 4, 2), filled(2, 0));
  device.set_faults({.fail_flushes_after = 0});
  EXPECT_EQ(device.flush().error().code, EIO);
}

TEST_F(DeviceTest, ReadsAndWritesAreCountedByTheirSize) {
  IoSizes sizes;
  CountedDevice device(open_kind("file"), sizes);
  ASSERT_TRUE(put(device, 0, filled(3, 1)).ok());
  ASSERT_TRUE(put(device, 3, filled(3, 2)).ok());
  EXPECT_EQ(get(device, 1, 1), filled(1, 1));
  const LogHistogram writes = sizes.of(IoSizes::Kind::kWrite);
  EXPECT_EQ(writes.counts[LogBuckets::of(3 * kBlockSize)], 2U);
  EXPECT_EQ(writes.sum, 6 * kBlockSize);
  EXPECT_EQ(sizes.of(IoSizes::Kind::kRead).counts[LogBuckets::of(kBlockSize)], 1U);
}

TEST_F(DeviceTest, AFlushThatFailedIsFinal) {
  auto faulty = std::make_unique<FaultyDevice>(open_kind("file"), false);
  FaultyDevice& below = *faulty;
  FinalFlushDevice device(std::move(faulty));
  ASSERT_TRUE(put(device, 0, filled(1, 1)).ok());
  EXPECT_TRUE(device.flush().ok());
  below.set_faults({.fail_flushes_after = 0});
  EXPECT_EQ(device.flush().error().code, EIO);
  below.set_faults({});
  EXPECT_TRUE(below.flush().ok());
  EXPECT_EQ(device.flush().error().code, EIO);
  EXPECT_EQ(get(device, 0, 1), filled(1, 1));
}

TEST_F(DeviceTest, APowerCutKeepsWhatWasFlushedAndAnyMixOfTheRest) {
  std::set<int> seen;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    FaultyDevice device(open_kind("file"), true);
    ASSERT_TRUE(put(device, 0, filled(2, 1)).ok());
    ASSERT_TRUE(device.flush().ok());
    ASSERT_TRUE(put(device, 1, filled(1, 2)).ok());
    ASSERT_TRUE(put(device, 1, filled(1, 3)).ok());
    EXPECT_EQ(get(device, 1, 1), filled(1, 3));
    device.power_cut(seed);
    EXPECT_EQ(put(device, 1, filled(1, 3)).error().code, EIO);
    device.power_on();
    EXPECT_EQ(get(device, 0, 1), filled(1, 1));
    const auto after = get(device, 1, 1);
    for (size_t at = 0; at < kBlockSize; at += 512) seen.insert(static_cast<int>(after[at]));
  }
  EXPECT_EQ(seen, (std::set<int>{1, 2, 3}));
}

}  // namespace
}  // namespace streamfs::blockdev
