// check() on large and on hostile media: the same sentences from any number of threads; and
// whatever the bytes are, nothing asserts and nothing loops.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

// The same sentences in the same order, however many threads look for them.
TEST(CheckThreads, DoNotChangeWhatIsSaid) {
  Filesystem fs({.meta_bytes = 32 << 20, .data_blocks = 1 << 14});
  std::vector<InodeId> files;
  for (int d = 0; d < 40; ++d) {
    const InodeId directory = fs.directory("d" + std::to_string(d));
    for (int i = 0; i < 300; ++i) {
      files.push_back(fs.file("f" + std::to_string(i), directory));
      if (i % 10 != 0) continue;
      fs.write(files.back(), 0, 2);
      fs.commit(files.back());
    }
  }
  fs.close();
  std::mt19937_64 random(3);
  for (int i = 0; i < 400; ++i) {
    const InodeId id = files[random() % files.size()];
    InodeImage image = load_image(fs.region(), id);
    if (i % 4 == 0) image.nlink += 1;
    if (i % 4 == 1) image.blocks_vstream += 1;
    if (i % 4 == 2) image.mode = 0040755;
    if (i % 4 == 3)
      std::ranges::copy(load_image(fs.region(), files[0]).inline_area, image.inline_area);
    if (i % 4 == 3) image.flags |= kInlineExtent0;
    image.checksum = inode_checksum(image) + (i % 20 == 0 ? 1 : 0);
    fs.region().store(inode_offset(id), std::bit_cast<InodeWords>(image));
  }
  const auto said = [&](unsigned threads) {
    CheckOptions options;
    options.threads = threads;
    uint64_t done = 0;
    options.progress = [&](int pass, uint64_t now, uint64_t total) {
      EXPECT_LE(now, total);
      EXPECT_TRUE(pass == 1 || pass == 2);
      ++done;
    };
    const auto report = check(fs.region(), *load_superblock(fs.region(), false), options);
    EXPECT_TRUE(report.ok());
    EXPECT_GT(done, 0U);
    std::string all;
    for (const auto& problem : report->problems) all += problem.text + "\n";
    return all;
  };
  const std::string one = said(1);
  EXPECT_GT(std::ranges::count(one, '\n'), 300);
  for (const unsigned threads : {2U, 3U, 8U}) EXPECT_EQ(said(threads), one);
}

// 100 directories, in several units of inodes.
class ChainedInodes : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 100; ++i) made_.push_back(fs_.directory("d" + std::to_string(i)));
    fs_.close();
  }
  static uint64_t unit(InodeId id) { return round_down(inode_offset(id), kUnitSize); }
  // In the middle of a unit, where a header reaches it not.
  InodeId directory_after(uint64_t unit_before) {
    return *std::ranges::find_if(made_, [&](InodeId id) {
      return unit(id) > unit_before && inode_offset(id) > unit(id) + kUnitSize / 2;
    });
  }
  void set_chain(InodeId id, uint64_t chain) {
    InodeImage image = load_image(fs_.region(), id);
    image.chain = chain;
    image.checksum = inode_checksum(image);
    fs_.region().store(inode_offset(id), std::bit_cast<InodeWords>(image));
    fs_.region().store_word(chain, unit_owner(id, UnitKind::kDirectory));
    fs_.region().store_word(chain + offsetof(UnitHeader, next), 0);
  }
  // All that a check with repairs says.
  std::string repair(bool anything_repaired) {
    const auto found = check(fs_.region(), *load_superblock(fs_.region(), false), {.repair = true});
    EXPECT_TRUE(found.ok());
    EXPECT_EQ(std::ranges::any_of(found->problems, &CheckReport::Problem::repaired),
              anything_repaired);
    std::string all;
    for (const auto& problem : found->problems) all += problem.text + "\n";
    return all;
  }

  Filesystem fs_;
  std::vector<InodeId> made_;
};

TEST_F(ChainedInodes, DoNotExist) {
  const InodeId one = directory_after(unit(made_[0])), other = directory_after(unit(one));
  set_chain(one, unit(other));
  const std::string dangling =
      "leads to inode " + std::to_string(other.value) + ", which does not exist";
  const std::string said = repair(true);
  EXPECT_NE(said.find("has another kind in the heap map"), std::string::npos) << said;
  EXPECT_NE(said.find(dangling), std::string::npos) << said;
  EXPECT_NE(repair(false).find(dangling), std::string::npos);
}

TEST_F(ChainedInodes, ThatClaimEachOthersUnitsAreLeftAlone) {
  const InodeId one = directory_after(unit(made_[0])), other = directory_after(unit(one));
  set_chain(one, unit(other));
  set_chain(other, unit(one));
  const std::string said = repair(false);
  EXPECT_NE(said.find("lay claim to each other's heap units"), std::string::npos) << said;
  EXPECT_EQ(repair(false), said);
}

class HostileTest : public ::testing::TestWithParam<uint64_t> {};

void fix_checksums(pmem::Region& region, const Geometry& geometry) {
  for (uint64_t unit = 0; unit < geometry.heap_units(); ++unit) {
    if (read_unit_kind(region, geometry, unit) != UnitKind::kInodes) continue;
    for (uint64_t i = 0; i < kInodesPerUnit; ++i) {
      const InodeId id{geometry.unit_offset(unit) / kCellSize + i};
      InodeImage image = load_image(region, id);
      if (std::bit_cast<InodeWords>(image)[0] == 0) continue;
      image.checksum = inode_checksum(image);
      region.store(inode_offset(id), std::bit_cast<InodeWords>(image));
    }
  }
}

void touch_everything(Filesystem& fs, InodeId directory, int depth) {
  if (depth > 20) return;
  std::vector<std::pair<std::string, InodeId>> children;
  (void)fs->read_directory(directory, 0, [&](const DirectoryEntry& entry) {
    if (entry.name != "." && entry.name != "..") children.emplace_back(entry.name, entry.id);
    return children.size() < 1000;
  });
  for (const auto& [name, id] : children) {
    (void)fs->lookup(directory, name);
    (void)fs->attributes(id);
    (void)fs->map(id, FileBlock{0}, 1000);
    (void)fs->seek_hole(id, FileBlock{0});
    (void)fs->read_symlink(id);
    (void)fs->list_xattr(id);
    (void)fs->set_xattr(id, "user.new", "x", 0);
    (void)fs->set_size(id, 0);
    (void)fs->commit_inode(id, 1);
    touch_everything(fs, id, depth + 1);
    (void)fs->rename(directory, name, fs.root(), "moved-" + name, 0);
    (void)fs->link(id, directory, name + "-more");
    const auto gone = fs->unlink(directory, name);
    if (gone && fs->forget(*gone, 100)) (void)fs->free_orphan(*gone);
    (void)fs->rmdir(directory, name);
  }
}

TEST_P(HostileTest, NothingAssertsAndASecondRepairFindsNothingToDo) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937_64 random(GetParam());
  Filesystem fs({.meta_bytes = 3 << 20, .data_blocks = 4096});
  for (int i = 0; i < 30; ++i) {
    const std::string n = std::to_string(i);
    const InodeId d = fs.directory("d" + n), f = fs.file("f" + n, d);
    for (uint64_t at = 0; at < 12; ++at) fs.write(f, at * 2, 1);
    fs.commit(f);
    ASSERT_TRUE(fs->set_xattr(f, "user.x", std::string(100, 'x'), 0).ok());
    fs.file(std::string(100, 'l') + n, d);
  }
  fs.close();
  const Geometry geometry = *Geometry::from(*load_superblock(fs.region(), false));
  // Most of the heap is free: damage goes where something is.
  const uint64_t heap = geometry.unit_offset(0), used = 200 * kUnitSize;
  for (int i = 0; i < 20; ++i) {
    const uint64_t at = heap + random() % used / 8 * 8;
    const uint64_t old = fs.region().load(at);
    const uint64_t other = fs.region().load(heap + random() % used / 8 * 8);
    const uint64_t flipped = old ^ uint64_t{1} << random() % 64;
    fs.region().store_word(at, random() % 3 == 0 ? other : flipped);
  }
  const uint64_t map = geometry.region_offset(RegionKind::kHeapMap, 0);
  fs.region().store_word(map + random() % 24 * 8, random() & 0x0707070707070707);
  if (GetParam() % 2 == 0) fix_checksums(fs.region(), geometry);

  const Superblock super = *load_superblock(fs.region(), false);
  const auto found = check(fs.region(), super, {});
  ASSERT_TRUE(found.ok());
  const auto repaired = check(fs.region(), super, {.repair = true});
  if (repaired) {
    const auto again = check(fs.region(), *load_superblock(fs.region(), false), {.repair = true});
    ASSERT_TRUE(again.ok()) << again.error().message();
    for (const auto& problem : again->problems) EXPECT_FALSE(problem.repaired) << problem.text;
  }
  ManualClock clock;
  auto engine =
      Engine::open(fs.region(), super, clock, {.read_only = false, .start_background = false});
  if (!engine) return;
  engine->reset();
  fs.open();
  touch_everything(fs, fs.root(), 0);
  for (int i = 0; i < 50; ++i)
    (void)fs->create(fs.root(), "new" + std::to_string(i), node(S_IFREG));
  fs.abandon();
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileTest, ::testing::Range<uint64_t>(1, 201));

}  // namespace
}  // namespace streamfs::meta
