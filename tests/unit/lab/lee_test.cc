// Lee's device and what is written to it; its figures are in tests/figures.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "lab/figures/figure.h"
#include "lab/figures/lee_device.h"
#include "lab/workload/fat_volume.h"
#include "pmem/region.h"
#include "ssd/media/pram_blocks.h"

namespace streamfs::lab::figures {
namespace {

// Keeps the metadata as written, and what of the data is there.
struct MirrorDevice final : FatDevice {
  int write_metadata(uint32_t page, ConstBytes now) override {
    ++metadata_writes;
    metadata[page].assign(now.begin(), now.end());
    return 0;
  }
  int write_data(uint32_t first, uint32_t pages) override {
    if (failing) return EIO;
    for (uint32_t page = first; page < first + pages; ++page) ++data[page];
    return 0;
  }
  void trim(uint32_t first, uint32_t pages) override {
    for (uint32_t page = first; page < first + pages; ++page) data.erase(page);
  }
  std::map<uint32_t, std::vector<std::byte>> metadata;
  std::map<uint32_t, int> data;
  uint64_t metadata_writes = 0;
  bool failing = false;
};

FatShape small_shape() {
  FatShape shape;
  shape.pages = 4096;
  shape.log_pages = 4;
  shape.directory_pages = 2;
  return shape;
}

uint32_t fat_entry(const MirrorDevice& device, uint32_t copy, uint32_t entry) {
  const FatShape shape = small_shape();
  const uint32_t fat_pages = (4096 / 2 + 2) * 4 / 2048 + 1;
  const uint32_t page = shape.log_pages + copy * fat_pages + entry * 4 / 2048;
  uint32_t value = 0;
  std::memcpy(&value, device.metadata.at(page).data() + entry * 4 % 2048, sizeof value);
  return value;
}

TEST(FatVolume, AChainIsWrittenInBothTablesAndGivenBack) {
  MirrorDevice device;
  auto made = FatVolume::make(small_shape(), device);
  ASSERT_TRUE(made.ok());
  FatVolume volume = std::move(*made);
  const uint32_t free = volume.free_clusters();
  FatVolume::File file = 0;
  ASSERT_EQ(volume.create(file), 0);
  ASSERT_EQ(volume.append(file, 3), 0);
  for (const uint32_t copy : {0u, 1u}) {
    EXPECT_EQ(fat_entry(device, copy, 2), 3u);
    EXPECT_EQ(fat_entry(device, copy, 3), 4u);
    EXPECT_EQ(fat_entry(device, copy, 4), 0x0fffffffu);
  }
  EXPECT_EQ(device.data.size(), 6u) << "two pages a cluster";
  for (const auto& [page, times] : device.data)
    EXPECT_GE(page, FatVolume::metadata_pages(small_shape()));
  EXPECT_EQ(volume.free_clusters(), free - 3);
  ASSERT_EQ(volume.remove(file, true), 0);
  EXPECT_EQ(fat_entry(device, 1, 3), 0u);
  EXPECT_TRUE(device.data.empty());
  EXPECT_EQ(volume.free_clusters(), free);
}

TEST(FatVolume, ATransactionIsALogPageAndWhatChanged) {
  MirrorDevice device;
  FatVolume volume = std::move(*FatVolume::make(small_shape(), device));
  FatVolume::File file = 0;
  ASSERT_EQ(volume.create(file), 0);
  EXPECT_EQ(device.metadata_writes, 2u) << "log, directory";
  ASSERT_EQ(volume.append(file, 1), 0);
  EXPECT_EQ(device.metadata_writes, 6u) << "and both FATs";
  ASSERT_EQ(volume.overwrite(file, 0, 1), 0);
  EXPECT_EQ(device.metadata_writes, 8u);
}

TEST(FatVolume, FullAndFailingAreErrors) {
  MirrorDevice device;
  FatVolume volume = std::move(*FatVolume::make(small_shape(), device));
  FatVolume::File file = 0;
  ASSERT_EQ(volume.create(file), 0);
  EXPECT_EQ(volume.append(file, volume.free_clusters() + 1), ENOSPC);
  device.failing = true;
  EXPECT_EQ(volume.append(file, 1), EIO);
  FatShape tiny = small_shape();
  tiny.pages = 8;
  EXPECT_EQ(FatVolume::make(tiny, device).error().code, EINVAL);
}

TEST(PramBlocks, OnlyChangedWordsAreProgrammed) {
  for (const bool selective : {true, false}) {
    const auto region = pmem::make_memory_region(8192, pmem::MetaClass::kPersistent);
    ssd::PramBlocks blocks(*region, 2048, selective);
    std::vector<std::byte> block(2048);
    block[0] = block[9] = block[1030] = std::byte{1};
    blocks.write(1, block);
    const ssd::PramBlocks::Counts& counts = blocks.counts();
    EXPECT_EQ(counts.programmed, selective ? 3u : 256u);
    EXPECT_EQ(counts.words, 256u);
    EXPECT_EQ(counts.sectors, 2u);
    EXPECT_EQ(counts.changed, (std::array<uint64_t, 3>{3, 3, 3}));
    EXPECT_EQ(std::memcmp(region->at(2048), block.data(), 2048), 0);
    block[1] = block[2] = std::byte{1};  // in one word of 8 and of 4, in two of 2
    blocks.write(1, block);
    EXPECT_EQ(counts.changed, (std::array<uint64_t, 3>{5, 4, 4}));
  }
}

TEST(LeeDevice, TooSmallADeviceIsRefused) {
  const auto made = LeeDevice::make({.scale = 32});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, EINVAL);
  EXPECT_NE(made.error().context.find("4 of them spare; 6 are needed"), std::string::npos);
}

TEST(LeeDevice, AScaleAtWhichAFiguresSmallestDeviceCannotBeIsRefused) {
  const Result<FigureRun> run = run_figure(**find_figure("lee-startup"), {.seeds = 1, .scale = 4});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, EINVAL);
  EXPECT_NE(run.error().context.find("its smallest device, an 8th"), std::string::npos);
}

}  // namespace
}  // namespace streamfs::lab::figures
