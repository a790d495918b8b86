// A metadata log on simulated hardware: META in memory, and a device that forgets.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/record.h"
#include "fuse-fs/meta/snapshot.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"

namespace streamfs::meta {

// A data device that loses what was not flushed, and can fail one call.
class ForgetfulDevice final : public LogDevice {
 public:
  explicit ForgetfulDevice(uint64_t blocks) : durable_(blocks * kBlockSize) {}
  std::function<void()> on_write;
  std::function<void(BlockNo)> on_write_to;
  uint64_t writes_left = std::numeric_limits<uint64_t>::max();  // before the one that fails
  Result<void> write(BlockNo first, ConstBytes bytes) override {
    if (on_write) std::exchange(on_write, {})();
    if (on_write_to) on_write_to(first);
    if (writes_left-- == 0) return Error{EIO};
    for (uint64_t at = 0; at < bytes.size(); at += kBlockSize) {
      const auto block = bytes.subspan(at, kBlockSize);
      unflushed_[first.value + at / kBlockSize].assign(block.begin(), block.end());
    }
    return {};
  }
  Result<void> read(BlockNo first, Bytes bytes) override {
    for (uint64_t at = 0; at < bytes.size(); at += kBlockSize) {
      const uint64_t block = first.value + at / kBlockSize;
      const auto found = unflushed_.find(block);
      const std::byte* from =
          found != unflushed_.end() ? found->second.data() : durable_.data() + block * kBlockSize;
      std::memcpy(bytes.data() + at, from, kBlockSize);
    }
    return {};
  }
  Result<void> flush() override {
    for (const auto& [block, bytes] : unflushed_) {
      std::memcpy(durable_.data() + block * kBlockSize, bytes.data(), kBlockSize);
    }
    unflushed_.clear();
    return {};
  }
  void discard(BlockNo first, uint64_t count) override {
    discarded += count;
    std::memset(&durable_[first.value * kBlockSize], 0xa5, count * kBlockSize);
  }
  void cut_power() { unflushed_.clear(); }
  uint64_t discarded = 0;

 private:
  std::vector<std::byte> durable_;
  std::map<uint64_t, std::vector<std::byte>> unflushed_;
};

class MetadataLogTest : public testing::Test {
 protected:
  static constexpr uint64_t kMetaSize = 2 * 1024 * 1024;
  static constexpr uint64_t kDataBlocks = 16384;

  void SetUp() override {
    FormatOptions options;
    options.data_blocks = kDataBlocks;
    options.meta_log = true;
    options.random_seed = 9;
    const auto super = plan_format(kMetaSize, pmem::MetaClass::kVolatile, options);
    ASSERT_TRUE(super.ok()) << super.error().message();
    ASSERT_TRUE(format(*region_, *super, Timestamp{1, 0}).ok());
    geometry_ = *Geometry::from(*load_superblock(*region_, false));
    label_ = make_label(geometry_.super()).label;
    start();
  }

  void start() {
    log_.reset();
    journal_ = std::make_unique<Journal>(*region_, geometry_);
    auto log = MetadataLog::start(*region_, geometry_, *journal_, device_, label_);
    ASSERT_TRUE(log.ok()) << log.error().message();
    log_ = std::move(*log);
  }

  void attach_again(uint64_t end) {
    log_.reset();
    journal_ = std::make_unique<Journal>(*region_, geometry_);
    auto log = MetadataLog::attach(*region_, geometry_, *journal_, device_, label_, end);
    ASSERT_TRUE(log.ok()) << log.error().message();
    log_ = std::move(*log);
  }

  uint64_t object(uint64_t i) const { return geometry_.unit_offset(4) + i * kCellSize; }

  void create(uint64_t i, uint64_t tag) {
    Transaction tx(*region_);
    const std::array<uint64_t, 3> body{tag + 1, tag + 2, tag + 3};
    tx.body(object(i) + kWordSize, body);
    tx.patch(object(i), tag);
    ASSERT_TRUE(journal_->commit(tx).ok());
  }
  void change(uint64_t i, uint64_t value) {
    Transaction tx(*region_);
    tx.patch(object(i) + 2 * kWordSize, value);
    ASSERT_TRUE(journal_->commit(tx).ok());
  }
  void fsync() {
    const auto shipped = log_->ship();
    ASSERT_TRUE(shipped.ok());
    ASSERT_TRUE(device_.flush().ok());
    log_->made_durable(*shipped);
  }

  // Loses META and the power, restores, and starts again.
  void lose_meta() {
    log_.reset();
    journal_.reset();
    device_.cut_power();
    region_ = pmem::make_memory_region(kMetaSize, pmem::MetaClass::kVolatile);
    const auto restored = restore_from_log(*region_, label_, device_);
    ASSERT_TRUE(restored.ok()) << restored.error().message();
    const auto super = load_superblock(*region_, false);
    ASSERT_TRUE(super.ok());
    EXPECT_EQ(super->root_inode, geometry_.super().root_inode);
  }

  SnapshotHeaders headers() { return read_snapshot_headers(label_, device_).value(); }
  // Overwrites every block of the area of this generation.
  void destroy_area(uint64_t generation) {
    for (const BlockRange& range : snapshot_area(label_, generation)) {
      const std::vector<std::byte> noise(range.count * kBlockSize, std::byte{0x5a});
      ASSERT_TRUE(device_.write(BlockNo{range.first}, noise).ok());
    }
    ASSERT_TRUE(device_.flush().ok());
  }
  // Damages the index that the header of this generation is over.
  void damage_index(uint64_t generation) {
    const uint64_t at = snapshot_area(label_, generation).front().first + 1;
    const std::vector<std::byte> noise(kBlockSize, std::byte{0x5a});
    ASSERT_TRUE(device_.write(BlockNo{at}, noise).ok());
    ASSERT_TRUE(device_.flush().ok());
  }

  uint64_t word(uint64_t i, uint64_t w) const { return region_->load(object(i) + w * kWordSize); }

  std::unique_ptr<pmem::Region> region_ =
      pmem::make_memory_region(kMetaSize, pmem::MetaClass::kVolatile);
  ForgetfulDevice device_{kDataBlocks};
  Geometry geometry_;
  DataLabel label_{};
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<MetadataLog> log_;
};

}  // namespace streamfs::meta
