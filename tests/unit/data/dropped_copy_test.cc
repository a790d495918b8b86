// META kept twice, of which one copy fails while mounted: files go on, and whatever the power does
// then, the copy that failed is not believed again before it was made anew.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/data/filesystem_impl.h"
#include "fuse-fs/pair/attachments.h"
#include "fuse-fs/pair/format_pair.h"
#include "fuse-fs/pair/pair.h"
#include "pmem/mirror_region.h"
#include "tests/unit/pmem/failing_region.h"

namespace streamfs::data {
namespace {

namespace fs = std::filesystem;

// GetParam(): the copy that fails.
class DroppedCopy : public testing::TestWithParam<size_t> {
 protected:
  DroppedCopy() {
    std::string pattern = (fs::temp_directory_path() / "streamfs-drop-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    for (size_t i = 0; i < 2; ++i) copies_[i] = path(i == 0 ? "a" : "b");
    std::ofstream(device_ = path("d")).flush();
    fs::resize_file(device_, 64 << 20);
    pair::FormatPairOptions out;
    out.meta_size = 12 << 20;
    out.meta_log = false;
    out.mirror_path = copies_[1];
    EXPECT_TRUE(pair::format_pair(copies_[0], device_, out, system_clock()).ok());
    open();
  }
  ~DroppedCopy() override {
    fs_.reset();
    fs::remove_all(folder_);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  MountOptions both() const {
    MountOptions options;
    options.mirror_path = copies_[1];
    options.wait_seconds = 0;
    return options;
  }
  MountOptions one() const {
    MountOptions options;
    options.degraded = true;
    options.wait_seconds = 0;
    return options;
  }

  // With a region that can fail below each side of the mirror, and DATA that can.
  void open() {
    const Result<void> opened = try_open();
    ASSERT_TRUE(opened.ok()) << opened.error().message();
  }
  // `writes`: as many writes of DATA succeed.
  Result<void> try_open(uint64_t writes = blockdev::Faults::kNever) {
    SFS_ASSIGN(pair::OpenPair pair, pair::open_pair(copies_[0], device_, both()));
    pair.region.reset();
    std::array<std::unique_ptr<pmem::FailingRegion>, 2> sides;
    for (size_t i = 0; i < 2; ++i) {
      sides[i] = std::make_unique<pmem::FailingRegion>(pmem::open_region(copies_[i], {}).value());
      sides_[i] = sides[i].get();
    }
    pair.region = std::make_unique<pmem::MirrorRegion>(std::move(sides[0]), std::move(sides[1]));
    auto device = std::make_unique<blockdev::FaultyDevice>(std::move(pair.device), false);
    data_ = device.get();
    device->set_faults({.fail_writes_after = writes});
    pair.device = std::move(device);
    if (fails_at_mount_) sides_[GetParam()]->fail();
    SFS_TRY(pair::attach(pair));
    SFS_ASSIGN(fs_, FilesystemImpl::open(std::move(pair), {}, system_clock(), false));
    return {};
  }
  // From here on the disk below this copy keeps nothing.
  void fail() {
    sides_[GetParam()]->fail();
    fs::copy_file(copies_[GetParam()], path("kept"), fs::copy_options::overwrite_existing);
  }
  void kill() {
    fs_.reset();
    fs::rename(path("kept"), copies_[GetParam()]);
  }
  Result<void> make(const std::string& name) {
    SFS_ASSIGN(const auto made, fs_->create(fs_->root(), name, 0100644, 0, {}, {}));
    return fs_->fsync(made.id, false);
  }
  // The names that a mount finds, or why there is none.
  std::string found(const std::string& meta, const MountOptions& options) const {
    auto mounted = Filesystem::mount(meta, device_, options, system_clock());
    if (!mounted.ok()) return mounted.error().message();
    std::string names;
    EXPECT_TRUE((*mounted)
                    ->read_directory((*mounted)->root(), 0,
                                     [&](const meta::DirectoryEntry& entry) {
                                       if (entry.name.front() != '.')
                                         names += std::string(entry.name) + " ";
                                       return true;
                                     })
                    .ok());
    EXPECT_TRUE((*mounted)->unmount().ok());
    return names;
  }
  // A copy fails in a mount, and after `writes` writes so does DATA.
  void expect_mounts_after_cut(uint64_t writes) {
    EXPECT_TRUE(make("before").ok());
    EXPECT_TRUE(fs_->unmount().ok());
    fs_.reset();
    fails_at_mount_ = true;
    EXPECT_FALSE(try_open(writes).ok());
    EXPECT_EQ(found(left(), one()), "before ");
  }
  const std::string& failed() const { return copies_[GetParam()]; }
  const std::string& left() const { return copies_[1 - GetParam()]; }

  fs::path folder_;
  std::array<std::string, 2> copies_;
  std::string device_;
  std::array<pmem::FailingRegion*, 2> sides_{};
  blockdev::FaultyDevice* data_ = nullptr;
  bool fails_at_mount_ = false;
  std::unique_ptr<FilesystemImpl> fs_;
};
INSTANTIATE_TEST_SUITE_P(Either, DroppedCopy, testing::Values(0, 1));

TEST_P(DroppedCopy, FilesGoOnAndItIsSaid) {
  EXPECT_TRUE(make("before").ok());
  EXPECT_EQ(fs_->status()->mirror_degraded, "");
  fail();
  EXPECT_TRUE(make("after").ok());
  const Status status = fs_->status().value();
  EXPECT_NE(status.mirror_degraded.find("the copy that fails"), std::string::npos);
  EXPECT_FALSE(status.degraded_read_only);
  EXPECT_TRUE(fs_->unmount().ok());
}

TEST_P(DroppedCopy, TheOtherHasEverythingAfterACutAndThisIsMadeAnew) {
  EXPECT_TRUE(make("before").ok());
  fail();
  EXPECT_TRUE(make("after").ok());
  kill();
  EXPECT_NE(found(failed(), one()).find("older copy"), std::string::npos);
  EXPECT_EQ(found(left(), one()), "before after ");
  EXPECT_EQ(found(copies_[0], both()), "before after ");
  EXPECT_EQ(found(failed(), one()), "before after ") << "in step again";
}

TEST_P(DroppedCopy, BothAreMountedAfterTheCutAndTheOtherIsBelieved) {
  fail();
  EXPECT_TRUE(make("after").ok());
  kill();
  EXPECT_EQ(found(copies_[0], both()), "after ");
  EXPECT_EQ(found(failed(), one()), "after ");
}

TEST_P(DroppedCopy, AnOrderlyUnmountAfterwardsLeavesItOlder) {
  EXPECT_TRUE(make("before").ok());
  fail();
  EXPECT_TRUE(make("after").ok());
  EXPECT_TRUE(fs_->unmount().ok());
  kill();
  EXPECT_NE(found(failed(), one()).find("older copy"), std::string::npos);
  EXPECT_EQ(found(copies_[0], both()), "before after ");
}

TEST_P(DroppedCopy, InTheUnmountItselfToo) {
  EXPECT_TRUE(make("before").ok());
  fail();
  EXPECT_TRUE(fs_->unmount().ok());
  kill();
  EXPECT_NE(found(failed(), one()).find("older copy"), std::string::npos);
  EXPECT_EQ(found(copies_[0], both()), "before ");
}

// The copy fails at each sync of an unmount, and DATA at each of its writes after that.
TEST_P(DroppedCopy, ACutInAnUnmountThatLosesACopyLeavesWhatMounts) {
  EXPECT_TRUE(make("before").ok());
  EXPECT_TRUE(fs_->unmount().ok());
  fs_.reset();
  for (const std::string& file : {copies_[0], copies_[1], device_}) fs::copy_file(file, file + "0");
  int cut = 0;
  for (const int64_t syncs : {0, 1, 2, 3}) {
    for (const uint64_t writes : {0U, 1U, 2U}) {
      for (const std::string& file : {copies_[0], copies_[1], device_})
        fs::copy_file(file + "0", file, fs::copy_options::overwrite_existing);
      open();
      sides_[GetParam()]->fail_after(syncs);
      data_->set_faults({.fail_writes_after = writes});
      cut += fs_->unmount().ok() ? 0 : 1;
      fs_.reset();
      EXPECT_EQ(found(left(), one()), "before ") << syncs << " " << writes;
    }
  }
  EXPECT_GT(cut, 3);
}

TEST_P(DroppedCopy, InTheMountItselfToo) {
  EXPECT_TRUE(make("before").ok());
  EXPECT_TRUE(fs_->unmount().ok());
  fs_.reset();
  fs::copy_file(failed(), path("kept"));
  fails_at_mount_ = true;
  open();
  EXPECT_NE(fs_->status()->mirror_degraded, "");
  EXPECT_TRUE(make("after").ok());
  kill();
  EXPECT_NE(found(failed(), one()).find("older copy"), std::string::npos);
  EXPECT_EQ(found(copies_[0], both()), "before after ");
}

// A mount that loses a copy counts twice on META. The cut is at each of its writes of DATA's count.
TEST_P(DroppedCopy, ACutAtTheFirstWriteOfDATAsCountLeavesWhatMounts) {
  expect_mounts_after_cut(0);
}
TEST_P(DroppedCopy, ACutAtTheSecondWriteOfDATAsCountLeavesWhatMounts) {
  expect_mounts_after_cut(1);
}

TEST_P(DroppedCopy, InAGrowthToo) {
  fail();
  fs::resize_file(device_, 128 << 20);
  const Result<Grown> grown = fs_->grow({});
  ASSERT_TRUE(grown.ok()) << grown.error().message();
  EXPECT_TRUE(make("after").ok());
  const uint64_t blocks = fs_->geometry().super().data_blocks;
  EXPECT_EQ(blocks * kBlockSize, 128U << 20);
  kill();
  EXPECT_EQ(found(copies_[0], both()), "after ");
  open();
  EXPECT_EQ(fs_->geometry().super().data_blocks, blocks);
}

// The power goes after META's attachment, and before DATA knows of it: nobody was promised
// anything, and either may go on.
TEST_P(DroppedCopy, WhatDATADoesNotKnowOfWasNotPromised) {
  EXPECT_TRUE(make("before").ok());
  fail();
  data_->set_faults({.fail_writes_after = 0});
  const auto made = fs_->create(fs_->root(), "after", 0100644, 0, {}, {});
  ASSERT_TRUE(made.ok());
  EXPECT_FALSE(fs_->fsync(made->id, false).ok());
  EXPECT_TRUE(fs_->status()->degraded_read_only);
  kill();
  EXPECT_EQ(found(failed(), one()).substr(0, 7), "before ");
}

TEST_P(DroppedCopy, TheLossOfBothEndsInReadOnly) {
  EXPECT_TRUE(make("before").ok());
  for (pmem::FailingRegion* side : sides_) side->fail();
  EXPECT_EQ(make("after").error().code, EIO);
  EXPECT_EQ(make("later").error().code, EROFS);
  EXPECT_TRUE(fs_->lookup(fs_->root(), "before").ok()) << "what is there is read on";
}

TEST_P(DroppedCopy, OneAfterTheOtherToo) {
  fail();
  EXPECT_TRUE(make("after").ok());
  sides_[1 - GetParam()]->fail();
  EXPECT_EQ(make("last").error().code, EIO);
  EXPECT_TRUE(fs_->status()->degraded_read_only);
}

}  // namespace
}  // namespace streamfs::data
