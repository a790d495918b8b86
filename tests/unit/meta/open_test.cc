// Opening a filesystem: what it reads does not depend on what META holds, and what is read later is
// what the open found.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/inode_slots.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

// A copy of a region whose pages are counted when they are first touched.
class CountingRegion final : public pmem::Region {
 public:
  explicit CountingRegion(const pmem::Region& original) {
    void* memory =
        mmap(nullptr, original.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    std::memcpy(memory, original.at(0), original.size());
    attach(static_cast<std::byte*>(memory), original.size());
    base = static_cast<std::byte*>(memory);
    end = base + original.size();
    touched = 0;
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before_);
    mprotect(memory, original.size(), PROT_NONE);
  }
  ~CountingRegion() override {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(base, size());
  }
  uint64_t pages_touched() const { return touched; }
  pmem::MetaClass meta_class() const override { return pmem::MetaClass::kPersistent; }

 protected:
  void on_store(uint64_t, uint64_t) override {}
  void write_back_line(uint64_t) override {}
  void drain() override {}
  Result<void> make_durable() override { return {}; }

 private:
  static void on_fault(int, siginfo_t* info, void*) {
    auto* at = static_cast<std::byte*>(info->si_addr);
    if (at < base || at >= end) _exit(139);  // a fault of the program's own
    const auto page = static_cast<uint64_t>(at - base) / kUnitSize * kUnitSize;
    mprotect(base + page, kUnitSize, PROT_READ | PROT_WRITE);
    ++touched;
  }
  static inline std::byte *base = nullptr, *end = nullptr;
  static inline std::atomic<uint64_t> touched{0};
  struct sigaction before_{};
};

// Pages of META that are touched from finding the superblock to an engine that is open.
uint64_t pages_of_an_open(const pmem::Region& media) {
  CountingRegion region(media);
  ManualClock clock;
  const auto super = load_superblock(region, true);
  EXPECT_TRUE(super.ok());
  auto engine =
      Engine::open(region, *super, clock, {.read_only = false, .start_background = false});
  EXPECT_TRUE(engine.ok());
  return region.pages_touched();
}

// `files` in directories of 1000, then a cut with 20 records in the rings.
uint64_t pages_after_a_cut(int files, Size size = {64 * kMiB, 1 << 18}) {
  Filesystem fs(size);
  InodeId directory = fs.directory("first");
  for (int i = 0; i < files; ++i) {
    if (i % 1000 == 999) directory = fs.directory("d" + std::to_string(i));
    fs.file("f" + std::to_string(i), directory);
    if (i % 10 != 0) continue;
    EXPECT_EQ(fs.unlink("f" + std::to_string(i), directory), 0);  // an orphan: it is still open
  }
  fs->journal().checkpoint();
  for (int i = 0; i < 20; ++i) fs.file("last" + std::to_string(i));
  fs.abandon();
  return pages_of_an_open(fs.region());
}

TEST(Open, TouchesAsMuchOfAFullMetaAsOfAnEmptyOne) {
  const uint64_t empty = pages_after_a_cut(0), some = pages_after_a_cut(5'000);
  const uint64_t many = pages_after_a_cut(50'000);
  EXPECT_GT(empty, 100U) << "the rings at least";
  // The inodes of the 20 replayed records may lie in more units than in an empty META.
  EXPECT_LE(some, empty + 8);
  EXPECT_LE(many, empty + 8);
}

TEST(Open, TouchesAsMuchOfALargeMetaAsOfASmallOne) {
  const uint64_t small = pages_after_a_cut(0);
  EXPECT_LE(pages_after_a_cut(0, {256 * kMiB, 1 << 24}), small + 2);
}

// ---- Media whose heap map and bitmaps say what a test wants, in several groups.

class BigMeta : public ::testing::Test {
 protected:
  static constexpr uint64_t kLeft = 40;  // units beyond the reserve

  void SetUp() override {
    fs_.close();
    geometry_.emplace(*Geometry::from(*load_superblock(fs_.region(), false)));
    ASSERT_GT(geometry_->heap_units(), 2 * Heap::kGroupUnits);
  }
  void set_kinds(uint64_t first, uint64_t end, UnitKind kind) {
    for (uint64_t unit = first; unit < end; ++unit) {
      const uint64_t at = geometry_->region_offset(RegionKind::kHeapMap, unit);
      const uint64_t shift = at % 8 * 8;
      fs_.region().store_masked(at / 8 * 8, uint64_t{0xff} << shift,
                                uint64_t{static_cast<uint8_t>(kind)} << shift);
    }
  }
  uint64_t reserve() const { return heap_reserve(geometry_->heap_units()); }
  uint64_t units_of(UnitKind kind) const {
    uint64_t count = 0;
    for (uint64_t unit = 0; unit < geometry_->heap_units(); ++unit)
      count += read_unit_kind(const_cast<Filesystem&>(fs_).region(), *geometry_, unit) == kind;
    return count;
  }

  Filesystem fs_{{.meta_bytes = 300 * kMiB, .data_blocks = 1 << 20}};
  std::optional<Geometry> geometry_;
};

TEST_F(BigMeta, FreeUnitsAreExactWhereverTheyLie) {
  set_kinds(100, 40'000, UnitKind::kExtents);
  set_kinds(Heap::kGroupUnits * 2 + 3, Heap::kGroupUnits * 2 + 70, UnitKind::kDirty);
  fs_.open();
  const uint64_t free = units_of(UnitKind::kFree) + units_of(UnitKind::kDirty);
  fs_.directory("a");  // a unit changes before anyone has counted
  fs_.file("b", fs_.directory("c"));
  const uint64_t now = units_of(UnitKind::kFree) + units_of(UnitKind::kDirty);
  EXPECT_LT(now, free);
  EXPECT_EQ(fs_->space().free_units, now);
  fs_.abandon();
}

// All that is left lies in the last group; the first create after a cut must find it, and no
// create may eat what unlink and truncate need.
TEST_F(BigMeta, ACreateFindsTheLastUnitsAndLeavesTheReserve) {
  const uint64_t units = geometry_->heap_units();
  set_kinds(2, units - reserve() - kLeft, UnitKind::kExtents);
  fs_.open();
  uint64_t made = 0;
  while (true) {
    const auto id = fs_->create(fs_.root(), std::to_string(made), node(S_IFDIR | 0755));
    if (!id.ok()) {
      EXPECT_EQ(id.error().code, ENOSPC);
      break;
    }
    ++made;
    if (made % 100 == 0) fs_.crash();
  }
  EXPECT_GT(made, 12 * kLeft);  // 16 inodes or 63 names a unit
  EXPECT_EQ(fs_->space().free_units, reserve());
  for (uint64_t i = 0; i < made; ++i) {
    ASSERT_EQ(fs_->rmdir(fs_.root(), std::to_string(i)).ok(), true);
    if (i % 100 == 0) fs_.crash();
  }
  fs_.abandon();
}

// Units freed before anyone counted wait for the watermark like all others, and are counted once.
TEST_F(BigMeta, UnitsFreedInAGroupNobodyHasReadAreCountedOnce) {
  fs_.open();
  const InodeId directory = fs_.directory("d");
  std::vector<InodeId> files;
  for (int i = 0; i < 2000; ++i) files.push_back(fs_.file(std::to_string(i), directory));
  fs_.crash();
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(fs_->lookup(directory, std::to_string(i)).ok());
    ASSERT_EQ(fs_.unlink(std::to_string(i), directory), 0);
    fs_.forget_and_free(files[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(fs_->space().free_units, units_of(UnitKind::kFree) + units_of(UnitKind::kDirty));
  fs_.close();
}

TEST(Open, InodesAreCountedExactlyAfterACut) {
  Filesystem fs({.meta_bytes = 8 * kMiB});
  for (int i = 0; i < 500; ++i) fs.file(std::to_string(i));
  fs.crash();
  for (int i = 0; i < 250; ++i) {
    const auto found = fs->lookup(fs.root(), std::to_string(i));
    ASSERT_EQ(fs.unlink(std::to_string(i)), 0);
    fs.forget_and_free(found->id);
  }
  fs.file("new");
  const auto used = [&] { return fs->space().inodes_possible - fs->space().inodes_free; };
  EXPECT_GE(used(), 252U);
  while (fs->count_inodes()) {
  }
  EXPECT_EQ(used(), 252U);
  fs.reopen();
  EXPECT_EQ(used(), 252U) << "the superblock of a clean filesystem knows";
  EXPECT_FALSE(fs->count_inodes());
}

// mkfs and statfs say how many files fit: perhaps one more fits, but never one fewer.
TEST(Open, AsManyFilesFitAsMkfsSays) {
  Filesystem fs({.meta_bytes = 4 * kMiB, .data_blocks = 1 << 12});
  const uint64_t said = inodes_possible(fs->geometry().super(), fs->geometry().meta_size());
  EXPECT_NEAR(static_cast<double>(fs->space().inodes_free), static_cast<double>(said), 20);
  InodeId directory;
  uint64_t files = 0;
  for (bool room = true; room; ++files) {
    if (files % 8 == 0) {
      const auto made =
          fs->create(fs.root(), "directory-" + std::to_string(files), node(S_IFDIR | 0755));
      if (!made.ok()) break;
      directory = made->id;
    }
    room = fs->create(directory, std::to_string(files), node(S_IFREG | 0644)).ok();
  }
  EXPECT_GE(files, said);
  EXPECT_LT(static_cast<double>(files), 1.1 * static_cast<double>(said));
}

// ---- Blocks

uint64_t unmarked_blocks(Filesystem& fs) {
  const Geometry& geometry = fs->geometry();
  uint64_t count = 0;
  for (uint64_t block = geometry.super().first_data_block; block < geometry.data_blocks(); ++block)
    count += fs.is_allocated(BlockNo{block}) ? 0 : 1;
  return count;
}

TEST(Open, FreeBlocksAreExactThoughSomeChangedBeforeTheyWereCounted) {
  Filesystem fs({.meta_bytes = 16 * kMiB, .data_blocks = 1 << 19});
  std::vector<InodeId> files;
  for (int i = 0; i < 20; ++i) {
    files.push_back(fs.file(std::to_string(i)));
    fs.write(files.back(), 0, 20'000);
    fs.commit(files.back());
  }
  fs.crash();
  for (int i = 0; i < 20; i += 2) {
    ASSERT_TRUE(fs->lookup(fs.root(), std::to_string(i)).ok());
    ASSERT_EQ(fs.unlink(std::to_string(i)), 0);
    fs.forget_and_free(files[static_cast<size_t>(i)]);
  }
  const auto more = fs.file("more");
  fs.write(more, 0, 50'000);
  fs.commit(more);
  EXPECT_EQ(fs->blocks().free_blocks() + fs->blocks().pending_blocks(), unmarked_blocks(fs));
  EXPECT_EQ(fs->blocks().pending_blocks(), 200'000U);
  // A trimmed block was freed, by this mount or an earlier one, and comes once.
  fs.crash();
  uint64_t trimmed = 0;
  while (const auto run = fs->blocks().next_trim(16384)) {
    trimmed += run->count;
    EXPECT_FALSE(fs.is_allocated(run->first));
    Transaction tx(fs.region());
    tx.run(run->first, run->count, RunKind::kTrimmed);
    ASSERT_TRUE(fs->journal().commit(tx).ok());
    fs->blocks().trimmed(*run);
  }
  EXPECT_EQ(trimmed, 200'000U);
  EXPECT_EQ(fs->blocks().pending_blocks(), 0U);
  EXPECT_EQ(fs->blocks().free_blocks(), unmarked_blocks(fs));
}

}  // namespace
}  // namespace streamfs::meta
