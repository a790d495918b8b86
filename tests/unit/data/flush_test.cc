// Data that the data floor reports as durable is on DATA after a power cut, whatever else the
// device forgets. tests/crash/mutation.py deletes the flushes that make it so.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/types.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/pair/attachments.h"
#include "fuse-fs/pair/format_pair.h"
#include "fuse-fs/pair/pair.h"
#include "pmem/region.h"
#include "tests/unit/data/ram_device.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

constexpr uint64_t kSeeds = 12;  // each chooses what of the unflushed the device keeps
constexpr uint64_t kBlocks = 4096;

// Both halves, just formatted, with a data device that forgets.
struct Halves {
  Halves() {
    meta::FormatOptions options;
    options.data_blocks = kBlocks;
    options.uuid = {7};
    auto made =
        std::make_unique<blockdev::FaultyDevice>(std::make_unique<RamDevice>(kBlocks), true);
    device = made.get();
    pair.device = std::move(made);
    pair.region = pmem::make_memory_region(2 << 20, pmem::MetaClass::kPersistent);
    pair.super = pair::format_open_pair(*pair.region, *pair.device, options, clock).value();
  }
  void power_cut(uint64_t seed) {
    device->power_cut(seed);
    device->power_on();
  }
  RigClock clock;
  pair::OpenPair pair;
  blockdev::FaultyDevice* device = nullptr;
};

TEST(FlushedData, TheLabelIsThereWhenMkfsReturns) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Halves halves;
    halves.power_cut(seed);
    const auto label = pair::read_label(*halves.device);
    EXPECT_TRUE(label.ok()) << "seed " << seed;
  }
}

TEST(FlushedData, AnAttachmentIsCountedWhenAttachReturns) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Halves halves;
    ASSERT_TRUE(pair::attach(halves.pair).ok());
    halves.power_cut(seed);
    const auto attached = pair::read_attachments(*halves.device);
    ASSERT_TRUE(attached.ok() && attached->has_value());
    EXPECT_EQ((*attached)->count, halves.pair.super.attachments) << "seed " << seed;
  }
}

TEST(FlushedData, WhatWasWrittenIsThereWhenFsyncReturns) {
  Rig rig;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const InodeId id = rig.create("f" + std::to_string(seed));
    const auto bytes = Rig::filled(3 * kBlockSize, static_cast<int>(seed));
    ASSERT_TRUE(rig.write(id, 0, bytes).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    rig.power_cut(seed);
    EXPECT_EQ(rig.read(rig.lookup("f" + std::to_string(seed)), 0, bytes.size()), bytes)
        << "seed " << seed;
  }
}

TEST(FlushedData, NamesAreInTheLogWhenFsyncReturns) {
  Rig rig(Rig::with_log(pmem::MetaClass::kVolatile));
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::string name = "f" + std::to_string(seed);
    ASSERT_TRUE(rig.fs().sync().ok());  // a log that begins has flushes of its own
    ASSERT_TRUE(rig.fs().fsync(rig.create(name), false).ok());
    rig.power_cut_losing_meta(seed);
    EXPECT_TRUE(rig.fs().lookup(rig.fs().root(), name).ok()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace streamfs::data
