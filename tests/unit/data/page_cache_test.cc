// META in an ordinary file: the kernel writes its pages back whenever it likes, in any order, and a
// power cut leaves any mix of old and new ones. Everything promised is there all the same.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ios>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/data/filesystem_impl.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/attachments.h"
#include "fuse-fs/pair/format_pair.h"
#include "fuse-fs/pair/log_blocks.h"
#include "fuse-fs/pair/pair.h"
#include "pmem/region.h"

namespace streamfs::data {
namespace {

namespace fs = std::filesystem;

// A file's pages as programs see them, and as its disk has them. For a single thread.
class PageCacheRegion final : public pmem::Region {
 public:
  PageCacheRegion(const std::string& path, uint64_t seed) : path_(path), random_(seed) {
    disk_.resize(fs::file_size(path));
    std::ifstream(path, std::ios::binary).read(disk_.data(), static_cast<int64_t>(disk_.size()));
    words_.resize(disk_.size() / kWordSize);
    std::memcpy(words_.data(), disk_.data(), disk_.size());
    attach(reinterpret_cast<std::byte*>(words_.data()), disk_.size());
  }
  pmem::MetaClass meta_class() const override { return pmem::MetaClass::kSynced; }
  // The kernel's own writing, of about one dirty page in three.
  void write_back() {
    for (uint64_t at = 0; at < disk_.size() && !cut_; at += kBlockSize) {
      if (dirty(at) && random_() % 3 == 0) write_page(at);
    }
  }
  // The power goes amid the sync after so many.
  void cut_in_sync(uint64_t after, std::function<void()> on_cut) {
    syncs_left_ = after;
    on_cut_ = std::move(on_cut);
  }
  // Nothing reaches the disk any more, which is the file from now on.
  void cut() {
    if (std::exchange(cut_, true)) return;
    std::ofstream(path_, std::ios::binary).write(disk_.data(), static_cast<int64_t>(disk_.size()));
    if (on_cut_) on_cut_();
  }
  bool is_cut() const { return cut_; }
  // The file is what programs see: as long as the machine stays up, it is to them.
  void keep_all() { std::memcpy(disk_.data(), words_.data(), disk_.size()), cut(); }

 protected:
  void on_store(uint64_t, uint64_t) override {}
  void write_back_line(uint64_t) override {}
  void drain() override {}
  Result<void> make_durable() override {
    if (cut_) return Error{EIO, "no power"};
    const bool last = syncs_left_-- == 0;
    for (uint64_t at = 0; at < disk_.size(); at += kBlockSize) {
      if (dirty(at) && (!last || random_() % 2 == 0)) write_page(at);
    }
    if (last) cut();
    return cut_ ? Result<void>(Error{EIO, "no power"}) : Result<void>();
  }

 private:
  bool dirty(uint64_t offset) const {
    return std::memcmp(at(offset), &disk_[offset], kBlockSize) != 0;
  }
  void write_page(uint64_t offset) { std::memcpy(&disk_[offset], at(offset), kBlockSize); }

  const std::string path_;
  std::mt19937_64 random_;
  std::vector<uint64_t> words_;
  std::vector<char> disk_;
  uint64_t syncs_left_ = ~uint64_t{0};
  std::function<void()> on_cut_;
  bool cut_ = false;
};

std::vector<std::byte> filled(int value) {
  return std::vector<std::byte>(3 * kBlockSize, static_cast<std::byte>(value));
}

class PageCache : public testing::Test {
 protected:
  PageCache() {
    std::string pattern = (fs::temp_directory_path() / "streamfs-pages-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    meta_ = (folder_ / "m").string();
    device_ = (folder_ / "d").string();
  }
  ~PageCache() override { fs::remove_all(folder_); }

  void make(bool log) {
    fs::remove(meta_);
    std::ofstream(device_).flush();
    fs::resize_file(device_, 48 << 20);
    pair::FormatPairOptions options;
    options.meta_size = 2 << 20;
    options.meta_log = log;
    options.force = true;
    options.wait_seconds = 0;
    const auto made = pair::format_pair(meta_, device_, options, system_clock());
    ASSERT_TRUE(made.ok()) << made.error().message();
  }
  // A machine with a page cache and a disk cache, in which this filesystem is mounted.
  void start(uint64_t seed, uint64_t syncs) {
    blockdev::OpenOptions open;
    open.wait_seconds = 0;
    auto faulty = std::make_unique<blockdev::FaultyDevice>(
        std::move(blockdev::open_device(device_, open)).value(), true);
    disk_ = faulty.get();
    auto region = std::make_unique<PageCacheRegion>(meta_, seed);
    pages_ = region.get();
    pages_->cut_in_sync(syncs, [this, seed] { disk_->power_cut(seed); });
    pair::OpenPair pair;
    pair.super = meta::load_superblock(*region, true).value();
    pair.label = pair::read_label(*faulty).value();
    pair.region = std::move(region);
    pair.device = std::move(faulty);
    if (!pair::attach(pair).ok()) return;
    auto opened = FilesystemImpl::open(std::move(pair), {}, system_clock(), false);
    if (opened.ok()) mounted_ = std::move(opened).value();
  }
  // Another boot than the one META says.
  void reboot() {
    mounted_.reset();
    auto opened = pmem::open_region(meta_, {});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    const auto region = std::move(opened).value();
    auto super = meta::load_superblock(*region, false);
    ASSERT_TRUE(super.ok()) << super.error().message();
    if (super->boot == 0) return;
    super->boot ^= 1;
    ASSERT_TRUE(meta::store_superblock(*region, *super).ok());
  }
  Result<std::unique_ptr<Filesystem>> mount(MountOptions options = {}) {
    options.wait_seconds = 0;
    return Filesystem::mount(meta_, device_, options, system_clock());
  }

  // Files, what is in them, and everything else about META.
  void expect_promises(std::unique_ptr<Filesystem> mounted, uint64_t seed) {
    for (const auto& [name, value] : promised_) {
      const auto found = mounted->lookup(mounted->root(), name);
      ASSERT_TRUE(found.ok()) << "seed " << seed << ": " << name;
      std::vector<std::byte> bytes(found->size);
      ASSERT_TRUE(mounted->read(found->id, 0, bytes).ok()) << "seed " << seed << ": " << name;
      EXPECT_EQ(bytes, filled(value)) << "seed " << seed << ": " << name;
    }
    ASSERT_TRUE(mounted->unmount().ok());
    mounted.reset();
    auto opened = pmem::open_region(meta_, {});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    const auto region = std::move(opened).value();
    const auto report = meta::check(*region, meta::load_superblock(*region, false).value(), {});
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report->sound()) << "seed " << seed << ": " << report->problems[0].text;
  }

  static constexpr uint64_t kNever = ~uint64_t{0};
  fs::path folder_;
  std::string meta_, device_;
  PageCacheRegion* pages_ = nullptr;  // the mounted filesystem's, as the device
  blockdev::FaultyDevice* disk_ = nullptr;
  std::unique_ptr<FilesystemImpl> mounted_;
  std::map<std::string, int> promised_;  // name → what fills the file
};

// Makes files, gives them new names, and removes some, each with an fsync; then unmounts.
void work(FilesystemImpl& fs, PageCacheRegion& pages, std::map<std::string, int>& promised) {
  for (int i = 1; i <= 12 && !pages.is_cut(); ++i) {
    const std::string name = "f" + std::to_string(i), before = "new" + std::to_string(i);
    const auto made = fs.create(fs.root(), before, 0100644, 0, {}, {});
    if (!made.ok() || !fs.write(made->id, 0, filled(i)).ok()) return;
    pages.write_back();
    if (!fs.fsync(made->id, false).ok()) return;
    promised[before] = i;
    if (!fs.rename(fs.root(), before, fs.root(), name, 0, [](InodeId) {}).ok()) return;
    promised.erase(before);  // either name may be found
    pages.write_back();
    if (!fs.fsync(made->id, false).ok()) return;
    promised[name] = i;
    if (i % 4 != 0) continue;
    const std::string victim = "f" + std::to_string(i - 2);
    promised.erase(victim);
    if (!fs.unlink(fs.root(), victim).ok() || !fs.sync().ok()) return;
    if (!fs.maintenance().reclaim().ok()) return;  // its blocks are another's soon
  }
  (void)fs.unmount();
}

TEST_F(PageCache, NothingPromisedIsLostWhateverReachedTheDisk) {
  uint64_t cuts = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    make(true);
    promised_.clear();
    start(seed, seed % 6);
    if (mounted_) work(*mounted_, *pages_, promised_);
    if (!mounted_ || pages_->is_cut()) ++cuts;
    if (mounted_) pages_->cut();
    reboot();
    auto again = mount();
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << again.error().message();
    expect_promises(std::move(again).value(), seed);
  }
  EXPECT_GT(cuts, 15U) << "amid a sync";
}

TEST_F(PageCache, ARebuildThatIsCutShortIsNotTakenForMeta) {
  uint64_t refused = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    make(true);
    promised_.clear();
    start(seed, 2 + seed % 4);
    ASSERT_TRUE(mounted_);
    work(*mounted_, *pages_, promised_);
    pages_->cut();
    reboot();
    {
      auto device = std::move(blockdev::open_device(device_, {})).value();
      pair::LogBlocks log(*device);
      PageCacheRegion region(meta_, seed);
      region.cut_in_sync(seed % 2, {});
      EXPECT_FALSE(meta::restore_from_log(region, pair::read_label(*device).value(), log).ok());
      EXPECT_TRUE(region.is_cut());
    }
    auto again = mount();
    MountOptions asked;
    asked.restore_meta = true;
    if (!again.ok()) {
      EXPECT_NE(again.error().message().find("--restore"), std::string::npos);
      ++refused;
      again = mount(asked);
    }
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << again.error().message();
    expect_promises(std::move(again).value(), seed);
  }
  EXPECT_GT(refused, 0U);
}

TEST_F(PageCache, WithALogAnFsyncWaitsForThatAlone) {
  make(true);
  start(1, kNever);
  const auto syncs = [&] { return mounted_->status()->pmem.syncs; };
  const auto made = mounted_->create(mounted_->root(), "f", 0100644, 0, {}, {});
  ASSERT_TRUE(made.ok() && mounted_->write(made->id, 0, filled(1)).ok());
  const uint64_t before = syncs();
  ASSERT_TRUE(mounted_->fsync(made->id, false).ok());
  EXPECT_EQ(syncs(), before);
  mounted_->maintenance().follow_round();  // the first follows at once
  EXPECT_EQ(syncs(), before + 1);
  mounted_->maintenance().follow_round();
  EXPECT_EQ(syncs(), before + 1);
  ASSERT_TRUE(mounted_->unmount().ok());
}

TEST_F(PageCache, AMetaThatCannotBeWrittenBackStopsTheMount) {
  make(true);
  start(1, kNever);
  pages_->cut();
  mounted_->maintenance().follow_round();
  EXPECT_TRUE(mounted_->status()->degraded_read_only);
  EXPECT_EQ(mounted_->create(mounted_->root(), "f", 0100644, 0, {}, {}).error().code, EROFS);
}

// The record was committed ahead of its data, which the device has dropped.
TEST_F(PageCache, AfterAFlushThatFailedTheNextMountBelievesTheLog) {
  make(true);
  start(1, kNever);
  const auto made = mounted_->create(mounted_->root(), "f", 0100644, 0, {}, {});
  ASSERT_TRUE(made.ok() && mounted_->fsync(made->id, false).ok());
  ASSERT_TRUE(mounted_->write(made->id, 0, filled(1)).ok());
  disk_->set_faults({.fail_flushes_after = 0});
  EXPECT_EQ(mounted_->fsync(made->id, false).error().code, EIO);
  pages_->keep_all();
  mounted_.reset();
  auto again = mount();
  ASSERT_TRUE(again.ok()) << again.error().message();
  const auto found = (*again)->lookup((*again)->root(), "f");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->size, 0U);
  expect_promises(std::move(again).value(), 1);
}

TEST_F(PageCache, AMountThatOnlyReadsRebuildsInMemory) {
  make(true);
  start(3, 4);
  ASSERT_TRUE(mounted_);
  work(*mounted_, *pages_, promised_);
  pages_->cut();
  reboot();
  const auto content = [this] {
    std::ifstream file(meta_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string before = content();
  MountOptions reads;
  reads.read_only = true;
  {
    auto mounted = mount(reads);
    ASSERT_TRUE(mounted.ok()) << mounted.error().message();
    EXPECT_FALSE(promised_.empty());
    for (const auto& [name, value] : promised_)
      EXPECT_TRUE((*mounted)->lookup((*mounted)->root(), name).ok()) << name;
  }
  EXPECT_EQ(content(), before);
  expect_promises(std::move(mount()).value(), 1);
}

// Without a log nothing tells what is missing; but nothing is made of what is not sound.
TEST_F(PageCache, WithoutALogWhatIsThereIsCheckedFirst) {
  uint64_t sound = 0, damaged = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    make(false);
    start(seed, 3 + seed % 5);
    ASSERT_TRUE(mounted_);
    work(*mounted_, *pages_, promised_);
    pages_->cut();
    reboot();
    auto again = mount();
    (again.ok() ? sound : damaged) += 1;
    if (again.ok()) {
      EXPECT_TRUE((*again)->unmount().ok());
      continue;
    }
    EXPECT_EQ(again.error().code, EUCLEAN) << again.error().message();
    EXPECT_NE(again.error().context.find("fsck.streamfs -y"), std::string::npos);
  }
  EXPECT_GT(sound, 0U);
  EXPECT_GT(damaged, 0U);
}

TEST_F(PageCache, TheLogIsPassedOverWhereThatIsAskedFor) {
  make(true);
  start(1, kNever);
  ASSERT_TRUE(mounted_->create(mounted_->root(), "f", 0100644, 0, {}, {}).ok());
  mounted_->maintenance().follow_round();  // META is whole on its disk, the log has nothing of it
  pages_->cut();
  reboot();
  MountOptions as_it_is;
  as_it_is.meta_as_it_is = true;
  {
    const auto pair = pair::open_pair(meta_, device_, as_it_is);
    ASSERT_TRUE(pair.ok()) << pair.error().message();
    EXPECT_TRUE(pair->unproven);
    EXPECT_TRUE(pair::prove(*pair).ok());
  }
  auto again = mount(as_it_is);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_TRUE((*again)->lookup((*again)->root(), "f").ok());
}

}  // namespace
}  // namespace streamfs::data
