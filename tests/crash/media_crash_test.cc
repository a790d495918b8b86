// Durable changes outside the journal: superblocks, a new filesystem, a restored one, snapshots in
// the log, cleared heap units, block checksums. Each is cut at every point, and is then either not
// there or whole; tests/crash/mutation.py deletes the flushes and fences that make it so.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/snapshot.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/recording_region.h"
#include "pmem/region.h"
#include "tests/crash/engine_prover.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kMetaBytes = 1024 * 1024;
constexpr uint64_t kDataBlocks = 4096;

Superblock planned(bool meta_log = false) {
  FormatOptions options;
  options.data_blocks = kDataBlocks;
  options.random_seed = 7;
  options.meta_log = meta_log;
  const auto plan = plan_format(kMetaBytes, pmem::MetaClass::kPersistent, options);
  EXPECT_TRUE(plan.ok());
  return *plan;
}

void make_filesystem(pmem::Region& region, bool meta_log = false) {
  ASSERT_TRUE(format(region, planned(meta_log), Timestamp{1, 0}).ok());
}

// Calls visit with every image of what was recorded; says where the first wrong ones were cut.
void expect_in_every_image(const pmem::RecordingRegion& region,
                           const std::function<bool(pmem::Region&, size_t marks)>& visit) {
  int wrong = 0;
  const uint64_t images = pmem::each_crash_image(region.initial(), region.events(), {},
                                                 [&](const pmem::CrashImage& image) {
                                                   pmem::ScratchRegion after(image.words);
                                                   if (visit(after, image.marks)) return true;
                                                   ADD_FAILURE() << image.description();
                                                   return ++wrong < 2;
                                                 });
  EXPECT_GT(images, 2U);
}

TEST(MediaCrash, SuperblockIsOldOrNewAtEveryCut) {
  pmem::RecordingRegion region(kMetaBytes, pmem::MetaClass::kPersistent);
  make_filesystem(region);
  Superblock super = *load_superblock(region, false);
  region.start_recording();
  for (super.attachments = 1; super.attachments < 3; ++super.attachments, ++super.generation) {
    ASSERT_TRUE(store_superblock(region, super).ok());
    region.mark();
  }
  expect_in_every_image(region, [](pmem::Region& after, size_t marks) {
    const auto found = load_superblock(after, false);
    return found.ok() && (found->attachments == marks || found->attachments == marks + 1);
  });
}

TEST(MediaCrash, FormatIsWholeOrNoFilesystemAtAll) {
  pmem::RecordingRegion region(kMetaBytes, pmem::MetaClass::kPersistent);
  make_filesystem(region);
  region.mark();
  expect_in_every_image(region, [](pmem::Region& after, size_t marks) {
    const auto found = load_superblock(after, true);
    if (!found.ok()) return marks == 0;
    const auto report = check(after, *found, {});
    return report.ok() && report->sound();
  });
}

// ---- Heap units

TEST(MediaCrash, UnitThatIsHandedOutIsClear) {
  pmem::RecordingRegion region(kMetaBytes, pmem::MetaClass::kPersistent);
  make_filesystem(region);
  const Geometry geometry = *Geometry::from(*load_superblock(region, false));
  // Nothing is free but one unit, which is full of what a dead object left.
  const uint64_t unit = 5, at = geometry.unit_offset(unit);
  for (uint64_t each = 2; each < geometry.heap_units(); ++each) {
    const uint64_t byte = geometry.region_offset(RegionKind::kHeapMap, each);
    const auto kind = static_cast<uint64_t>(each == unit ? UnitKind::kDirty : UnitKind::kExtents);
    region.store_masked(round_down(byte, kWordSize), uint64_t{0xff} << byte % kWordSize * 8,
                        kind << byte % kWordSize * 8);
  }
  for (uint64_t word = 0; word < kUnitSize; word += kWordSize) region.store_word(at + word, ~word);
  Journal journal(region, geometry);
  Heap heap({region, geometry, journal});
  region.start_recording();
  auto claim = heap.take(Heap::Purpose::kMust);
  ASSERT_TRUE(claim.ok());
  ASSERT_EQ(claim->offset(), at);
  Transaction tx(region);
  const InodeId owner{geometry.super().root_inode};
  heap.put_unit(tx, at, UnitKind::kDirectory, owner, 0);
  ASSERT_TRUE(journal.commit(tx).ok());
  claim->keep();
  region.mark();
  expect_in_every_image(region, [&](pmem::Region& after, size_t marks) {
    if (!recover_journal(after, geometry).ok()) return false;
    if (read_unit_kind(after, geometry, unit) != UnitKind::kDirectory) return marks == 0;
    const std::byte* slots = after.at(at + sizeof(UnitHeader));
    return std::all_of(slots, slots + kUnitSize - sizeof(UnitHeader),
                       [](std::byte each) { return each == std::byte{0}; });
  });
}

// ---- Checksums of blocks

class MediaCrashChecksums : public testing::Test {
 protected:
  static constexpr uint64_t kBlocks = 20;  // more than a line's worth

  void SetUp() override {
    make_filesystem(region_);
    auto opened = Engine::open(region_, *load_superblock(region_, false), clock_, {false, false});
    ASSERT_TRUE(opened.ok());
    engine_ = std::move(*opened);
    const auto made = engine_->create(engine_->root(), "file",
                                      CreateRequest{S_IFREG | 0644, {}, 0, "", {}, false});
    ASSERT_TRUE(made.ok());
    file_ = made->id;
  }

  std::vector<uint32_t> stored(const pmem::Region& region) const {
    const auto piece = engine_->map(file_, FileBlock{0}, 1)->front();
    std::vector<uint32_t> out(kBlocks);
    std::memcpy(out.data(), region.at(engine_->geometry().checksum_offset(piece.block)),
                kBlocks * sizeof(uint32_t));
    return out;
  }
  void write_and_commit() {
    ASSERT_TRUE(write_blocks(*engine_, file_, 0, kBlocks).ok());
    ASSERT_TRUE(engine_->commit_inode(file_, 1).ok());
  }

  TickingClock clock_{1000};
  pmem::RecordingRegion region_{kMetaBytes, pmem::MetaClass::kPersistent};
  std::unique_ptr<Engine> engine_;
  InodeId file_;
};

TEST_F(MediaCrashChecksums, AreNotKnownOnceAnOverwriteMayBegin) {
  write_and_commit();
  engine_->journal().checkpoint();
  const auto pieces = engine_->map(file_, FileBlock{0}, kBlocks);
  ASSERT_EQ(pieces->size(), 1U);
  ASSERT_TRUE(std::ranges::none_of(stored(region_), [](uint32_t crc) { return crc == 0; }));
  region_.start_recording();
  ASSERT_TRUE(engine_->begin_overwrite(file_, *pieces).ok());
  region_.mark();
  expect_in_every_image(region_, [&](pmem::Region& after, size_t marks) {
    return marks == 0 || std::ranges::all_of(stored(after), [](uint32_t crc) { return crc == 0; });
  });
}

TEST_F(MediaCrashChecksums, AreThereWhenTheCommitReturns) {
  ASSERT_TRUE(write_blocks(*engine_, file_, 0, 1).ok());  // its place is known from here on
  region_.start_recording();
  write_and_commit();
  region_.mark();
  const std::vector<uint32_t> expected = stored(region_);
  ASSERT_TRUE(std::ranges::none_of(expected, [](uint32_t crc) { return crc == 0; }));
  expect_in_every_image(region_, [&](pmem::Region& after, size_t marks) {
    return marks == 0 || stored(after) == expected;
  });
}

// ---- The metadata log

// Forgets what was not flushed; its power may go in a flush, which then keeps the last write alone.
class CutDevice final : public LogDevice {
 public:
  explicit CutDevice(uint64_t blocks) : durable_(blocks * kBlockSize) {}
  Result<void> write(BlockNo first, ConstBytes bytes) override {
    if (off_) return Error{EIO};
    last_ = {first.value, {bytes.begin(), bytes.end()}};
    for (uint64_t at = 0; at < bytes.size(); at += kBlockSize) {
      const auto block = bytes.subspan(at, kBlockSize);
      unflushed_[first.value + at / kBlockSize].assign(block.begin(), block.end());
    }
    return {};
  }
  Result<void> read(BlockNo first, Bytes bytes) override {
    if (off_) return Error{EIO};
    for (uint64_t at = 0; at < bytes.size(); at += kBlockSize) {
      const uint64_t block = first.value + at / kBlockSize;
      const auto found = unflushed_.find(block);
      std::memcpy(bytes.data() + at,
                  found == unflushed_.end() ? &durable_[block * kBlockSize] : found->second.data(),
                  kBlockSize);
    }
    return {};
  }
  Result<void> flush() override {
    if (off_) return Error{EIO};
    if (flushes_left_-- == 0) {
      std::memcpy(&durable_[last_.first * kBlockSize], last_.second.data(), last_.second.size());
      off_ = true;
      return Error{EIO};
    }
    for (const auto& [block, bytes] : unflushed_) {
      std::memcpy(&durable_[block * kBlockSize], bytes.data(), kBlockSize);
    }
    unflushed_.clear();
    return {};
  }
  void discard(BlockNo first, uint64_t count) override {
    if (!off_) std::memset(&durable_[first.value * kBlockSize], 0xa5, count * kBlockSize);
  }
  void cut_in_flush(uint64_t number) { flushes_left_ = number; }
  bool is_off() const { return off_; }
  // Drops all unflushed writes and switches the device on again.
  void cut_power() {
    unflushed_.clear();
    off_ = false;
    flushes_left_ = std::numeric_limits<uint64_t>::max();
  }

 private:
  std::vector<std::byte> durable_;
  std::map<uint64_t, std::vector<std::byte>> unflushed_;
  std::pair<uint64_t, std::vector<std::byte>> last_;
  uint64_t flushes_left_ = std::numeric_limits<uint64_t>::max();
  bool off_ = false;
};

class MediaCrashLog : public testing::Test {
 protected:
  void SetUp() override {
    make_filesystem(*region_, true);
    geometry_ = *Geometry::from(*load_superblock(*region_, false));
    label_ = make_label(geometry_.super()).label;
    journal_ = std::make_unique<Journal>(*region_, geometry_);
  }
  uint64_t word() const { return geometry_.unit_offset(9); }
  void change(uint64_t value) {
    Transaction tx(*region_);
    tx.patch(word(), value);
    ASSERT_TRUE(journal_->commit(tx).ok());
  }
  // The word as a restore finds it; nothing if it finds no filesystem.
  std::optional<uint64_t> restored() {
    const auto target = pmem::make_memory_region(kMetaBytes, pmem::MetaClass::kVolatile);
    const auto done = restore_from_log(*target, label_, device_);
    EXPECT_TRUE(done.ok()) << done.error().message();
    return done.ok() ? std::optional(target->load(word())) : std::nullopt;
  }
  Result<std::unique_ptr<MetadataLog>> start() {
    return MetadataLog::start(*region_, geometry_, *journal_, device_, label_);
  }
  Result<std::unique_ptr<MetadataLog>> attach() {
    return MetadataLog::attach(*region_, geometry_, *journal_, device_, label_, 0);
  }
  void mount_again() {
    Superblock super = *load_superblock(*region_, false);
    super.attachments = ++attachments_;
    ASSERT_TRUE(store_superblock(*region_, super).ok());
    geometry_ = *Geometry::from(*load_superblock(*region_, false));
    ASSERT_TRUE(recover_journal(*region_, geometry_).ok());
    journal_ = std::make_unique<Journal>(*region_, geometry_);
  }

  std::unique_ptr<pmem::Region> region_ =
      pmem::make_memory_region(kMetaBytes, pmem::MetaClass::kVolatile);
  CutDevice device_{kDataBlocks};
  Geometry geometry_;
  DataLabel label_{};
  std::unique_ptr<Journal> journal_;
  uint64_t attachments_ = 0;  // as DATA says
};

TEST_F(MediaCrashLog, SnapshotHeaderNeverComesBeforeItsPages) {
  change(1);
  ASSERT_TRUE(start().ok());
  change(2);
  bool cut = true;
  for (uint64_t number = 0; cut; ++number) {
    device_.cut_in_flush(number);
    cut = !start().ok();
    EXPECT_EQ(cut, device_.is_off());
    device_.cut_power();
    const auto found = restored();
    EXPECT_TRUE(found == 1 || found == 2) << "cut in flush " << number;
    if (!cut) {
      EXPECT_EQ(found, 2U);
    }
  }
}

TEST_F(MediaCrashLog, SnapshotPagesNeverChangeUnderAHeader) {
  ASSERT_TRUE(start().ok());
  bool cut = true;
  for (uint64_t number = 0; cut; ++number) {
    change(number + 1);
    device_.cut_in_flush(number);
    cut = !start().ok();
    device_.cut_power();
    const auto headers = read_snapshot_headers(label_, device_);
    ASSERT_TRUE(headers.ok());
    for (const SnapshotHeader& header : {headers->newest, headers->older}) {
      if (header.generation == 0) continue;
      EXPECT_TRUE(verify_snapshot(geometry_, label_, header, device_).ok())
          << "cut in flush " << number << ", snapshot " << header.generation;
    }
  }
}

// Another mount, after a kill: the log has to begin anew.
TEST_F(MediaCrashLog, WhatABeginningWritesTakesNothingFromTheLogBefore) {
  for (uint64_t number = 0, cut = true; cut != 0; ++number) {
    auto log = start();
    ASSERT_TRUE(log.ok());
    change(10 * number + 1);
    ASSERT_TRUE((*log)->ship().ok());
    ASSERT_TRUE(device_.flush().ok());
    log->reset();
    mount_again();
    log = attach();
    change(10 * number + 2);  // not shipped yet
    device_.cut_in_flush(number);
    cut = !(*log)->begin().ok();
    EXPECT_EQ(cut != 0, device_.is_off());
    log->reset();
    device_.cut_power();
    const auto found = restored();
    EXPECT_TRUE(found == 10 * number + 1 || found == 10 * number + 2) << "cut in flush " << number;
    if (cut == 0) {
      EXPECT_EQ(found, 10 * number + 2);
    }
    mount_again();
  }
}

TEST_F(MediaCrashLog, ABeginningInVainLeavesNoChunkThatAnotherGoesOnWith) {
  auto log = start();
  change(1);
  ASSERT_TRUE((*log)->ship().ok());
  ASSERT_TRUE(device_.flush().ok());
  log->reset();
  mount_again();
  log = attach();
  change(2);
  device_.cut_in_flush(0);
  EXPECT_FALSE((*log)->begin().ok());  // its chunk arrived
  log->reset();
  device_.cut_power();
  ASSERT_TRUE(restore_from_log(*region_, label_, device_).ok());
  mount_again();
  log = attach();
  ASSERT_TRUE((*log)->begin().ok());
  EXPECT_EQ(restored(), 1U);
}

// The data of a record is a block that bring_home() writes.
TEST_F(MediaCrashLog, SnapshotShowsNoRecordBeforeItsData) {
  const BlockNo data{kDataBlocks - 1};
  ASSERT_TRUE(start().ok());
  uint64_t value = 0;
  for (uint64_t number = 0, cut = true; cut != 0; ++number) {
    mount_again();
    auto log = attach();
    ASSERT_TRUE(log.ok());
    (*log)->follow_data([&](bool /*commits_stopped*/) -> Result<TxId> {
      std::vector<std::byte> block(kBlockSize);
      std::memcpy(block.data(), &value, sizeof(value));
      SFS_TRY(device_.write(data, block));
      SFS_TRY(device_.flush());
      return journal_->last();
    });
    change(++value);
    device_.cut_in_flush(number);
    cut = !(*log)->begin().ok();
    log->reset();
    device_.cut_power();
    std::vector<std::byte> block(kBlockSize);
    ASSERT_TRUE(device_.read(data, block).ok());
    uint64_t written = 0;
    std::memcpy(&written, block.data(), sizeof(written));
    const auto found = restored();
    EXPECT_TRUE(found && *found <= written) << "cut in flush " << number;
    if (cut == 0) {
      EXPECT_EQ(found, value);
    }
  }
}

TEST_F(MediaCrashLog, SnapshotIsDurableWhenItIsSaidToBe) {
  change(1);
  ASSERT_TRUE(start().ok());
  change(2);  // no log receives it
  for (uint64_t value = 2; value < 5; ++value) {
    change(value);
    const auto log = start();
    ASSERT_TRUE(log.ok());
    ASSERT_GE((*log)->durable(), journal_->last());
    device_.cut_power();
    EXPECT_EQ(restored(), value);
  }
}

TEST_F(MediaCrashLog, RestoreIsWholeOrNoFilesystemAtAll) {
  for (uint64_t value = 1; value < 4; ++value) change(value);
  ASSERT_TRUE(start().ok());
  pmem::RecordingRegion target(kMetaBytes, pmem::MetaClass::kPersistent);
  ASSERT_TRUE(restore_from_log(target, label_, device_).ok());
  target.mark();
  const std::vector<uint64_t> whole = target.words();
  expect_in_every_image(target, [&](pmem::Region& after, size_t marks) {
    if (!load_superblock(after, false).ok()) return marks == 0;
    const uint64_t from = kSuperAreaSize;  // load_superblock() has read this area
    return after.load(kWatermarkOffset) == whole[kWatermarkOffset / kWordSize] &&
           std::memcmp(after.at(from), &whole[from / kWordSize], kMetaBytes - from) == 0;
  });
}

}  // namespace
}  // namespace streamfs::meta
