// A write cache over a device that a test can look at and fail.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/data/write_cache.h"
#include "tests/unit/data/ram_device.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data::write_cache_test {

inline constexpr uint64_t kDeviceBlocks = 64, kCacheMax = 32;
inline constexpr InodeId kOwner{5};
inline constexpr blockdev::WriteTag kTag{{1, 2}, VStreamId{7}};

inline std::vector<std::byte> blocks_of(int value, uint64_t count = 1) {
  return Rig::filled(count * kBlockSize, value);
}

struct Buffered {
  explicit Buffered(bool volatile_cache = false)
      : device(std::make_unique<RamDevice>(kDeviceBlocks), volatile_cache),
        cache(device, kCacheMax, clock) {}
  RamDevice& ram() { return static_cast<RamDevice&>(device.inner()); }
  bool put(uint64_t first, int value, uint64_t count = 1, bool fresh = true) {
    return cache.put(kOwner, BlockNo{first}, blocks_of(value, count), kTag, fresh);
  }
  void write(uint64_t first, int value, uint64_t count = 1) {
    const auto bytes = blocks_of(value, count);
    blockdev::IoBatch batch(cache);
    batch.write(BlockNo{first}, bytes, {});
    EXPECT_TRUE(batch.wait().ok());
  }
  Result<void> flush() {
    const WriteCache::Still still(cache);
    WriteCache::Owners failed;
    Result<void> done = cache.write_out(&failed);
    SFS_TRY(cache.flush());
    cache.flushed(failed, cache.written_out());
    return done;
  }
  // The first byte of each block.
  std::vector<int> read(blockdev::Device& from, uint64_t first, uint64_t count) {
    std::vector<std::byte> bytes(count * kBlockSize);
    blockdev::IoBatch batch(from);
    batch.read(BlockNo{first}, bytes);
    EXPECT_TRUE(batch.wait().ok());
    std::vector<int> out;
    for (uint64_t i = 0; i < count; ++i) {
      const auto* block = &bytes[i * kBlockSize];
      EXPECT_TRUE(std::all_of(block, block + kBlockSize, [&](std::byte b) { return b == *block; }));
      out.push_back(std::to_integer<int>(*block));
    }
    return out;
  }
  std::vector<int> seen(uint64_t first, uint64_t count) { return read(cache, first, count); }
  std::vector<int> there(uint64_t first, uint64_t count) { return read(device, first, count); }

  RigClock clock;
  blockdev::FaultyDevice device;
  WriteCache cache;
};

using Values = std::vector<int>;

}  // namespace streamfs::data::write_cache_test
