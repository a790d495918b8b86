// The data path against a file that is just bytes, and against power cuts.
#include <gtest/gtest.h>
#include <linux/falloc.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

using Content = std::vector<std::byte>;

constexpr uint64_t kSpan = 300'000;

struct Random {
  explicit Random(uint64_t seed) : engine(seed) {}
  uint64_t below(uint64_t limit) { return engine() % limit; }
  // Where boundaries are is where the mistakes are.
  uint64_t offset() {
    const uint64_t any = below(kSpan);
    switch (below(4)) {
      case 0:
        return round_down(any, kBlockSize);
      case 1:
        return round_down(any, kBlockSize) + below(3);
      default:
        return any;
    }
  }
  uint64_t length() { return 1 + below(below(3) == 0 ? 70'000 : 6'000); }
  Content bytes(size_t size) {
    Content out(size);
    for (std::byte& b : out) b = static_cast<std::byte>(1 + engine() % 255);
    return out;
  }
  std::mt19937_64 engine;
};

void put(Content& file, uint64_t offset, const Content& bytes) {
  if (file.size() < offset + bytes.size()) file.resize(offset + bytes.size());
  std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<int64_t>(offset));
}

void clear(Content& file, uint64_t from, uint64_t to) {
  to = std::min<uint64_t>(to, file.size());
  if (from < to)
    std::fill(file.begin() + static_cast<int64_t>(from), file.begin() + static_cast<int64_t>(to),
              std::byte{0});
}

void random_step(Rig& rig, InodeId id, Content& file, Random& random) {
  const uint64_t offset = random.offset(), length = random.length();
  switch (random.below(12)) {
    case 0:
      ASSERT_TRUE(rig.fs().truncate(id, offset).ok());
      file.resize(offset);
      break;
    case 1:
      ASSERT_TRUE(
          rig.fs().allocate(id, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length).ok());
      clear(file, offset, offset + length);
      break;
    case 2:
      ASSERT_TRUE(rig.fs().allocate(id, FALLOC_FL_ZERO_RANGE, offset, length).ok());
      clear(file, offset, offset + length);
      if (file.size() < offset + length) file.resize(offset + length);
      break;
    case 3:
      ASSERT_TRUE(rig.fs().allocate(id, 0, offset, length).ok());
      if (file.size() < offset + length) file.resize(offset + length);
      break;
    case 4:
      ASSERT_TRUE(rig.fs().fsync(id, false).ok());
      break;
    default: {
      const Content bytes = random.bytes(length);
      const Result<void> done = rig.write(id, offset, bytes);
      ASSERT_TRUE(done.ok()) << done.error().message();
      put(file, offset, bytes);
    }
  }
}

class Reference : public testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(Reference, EveryReadIsWhatWasWrittenLast) {
  const auto [seed, checksums] = GetParam();
  Rig::Options options;
  options.checksums = checksums;
  Rig rig(options);
  Random random(static_cast<uint64_t>(seed));
  const InodeId id = rig.create("f");
  Content file;
  for (int step = 0; step < 400; ++step) {
    random_step(rig, id, file, random);
    if (HasFatalFailure()) return;
    const uint64_t from = random.offset(), length = random.length();
    const uint64_t end = std::min<uint64_t>(from + length, file.size());
    const Content expected = from >= end ? Content{}
                                         : Content(file.begin() + static_cast<int64_t>(from),
                                                   file.begin() + static_cast<int64_t>(end));
    ASSERT_EQ(rig.read(id, from, length), expected) << "seed " << seed << " step " << step;
    ASSERT_EQ(rig.fs().attributes(id)->size, file.size());
  }
  EXPECT_EQ(rig.read(id, 0, 2 * kSpan), file);
  rig.remount();
  EXPECT_EQ(rig.read(rig.lookup("f"), 0, 2 * kSpan), file) << "after a clean remount";
  EXPECT_EQ(rig.fs().status()->checksum_errors, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Reference, testing::Combine(testing::Range(1, 7), testing::Bool()));

// ---- Power cuts. Every word of a file says whose it is, where it belongs and how new it is.
struct Word {
  static uint64_t make(uint64_t file, uint64_t index, uint64_t version) {
    return file << 56 | (index & 0xffffffff) << 24 | version;
  }
  static uint64_t file(uint64_t w) { return w >> 56; }
  static uint64_t index(uint64_t w) { return w >> 24 & 0xffffffff; }
  static uint64_t version(uint64_t w) { return w & 0xffffff; }
};

class CutFile {
 public:
  CutFile(Rig& rig, uint64_t number) : number_(number), name_("f" + std::to_string(number)) {
    id_ = rig.create(name_);
  }
  const std::string& name() const { return name_; }
  InodeId id() const { return id_; }
  // False when the name is gone, which only a file never made durable may be.
  bool reopen(Rig& rig) {
    const auto found = rig.fs().lookup(rig.fs().root(), name_);
    if (found.ok()) id_ = found->id;
    return found.ok();
  }
  bool ever_durable() const { return ever_durable_; }

  void write(Rig& rig, uint64_t first, uint64_t count) {
    ++version_;
    std::vector<std::byte> bytes(count * 8);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t word = Word::make(number_, first + i, version_);
      std::memcpy(&bytes[i * 8], &word, 8);
      current_[first + i] = version_;
    }
    ASSERT_TRUE(rig.write(id_, first * 8, bytes).ok());
  }
  uint64_t end() const { return current_.empty() ? 0 : current_.rbegin()->first + 1; }
  void fsync(Rig& rig) {
    ASSERT_TRUE(rig.fs().fsync(id_, false).ok());
    durable_ = current_;
    ever_durable_ = true;
  }
  // Checks the content after a cut, which becomes the known content.
  void check(Rig& rig, uint64_t seed) {
    const std::vector<std::byte> bytes = rig.read(id_, 0, 1 << 20);
    std::map<uint64_t, uint64_t> found;
    for (uint64_t i = 0; i * 8 + 8 <= bytes.size(); ++i) {
      uint64_t word = 0;
      std::memcpy(&word, &bytes[i * 8], 8);
      if (word == 0) continue;
      ASSERT_EQ(Word::file(word), number_) << "another file's data, seed " << seed;
      ASSERT_EQ(Word::index(word), i) << "misplaced, seed " << seed;
      found[i] = Word::version(word);
    }
    for (const auto& [index, version] : durable_) {
      ASSERT_TRUE(found.contains(index)) << name_ << " word " << index << " lost, seed " << seed;
      ASSERT_GE(found[index], version) << "older than the fsync, seed " << seed;
    }
    durable_ = current_ = found;
  }

 private:
  uint64_t number_;
  std::string name_;
  InodeId id_;
  uint64_t version_ = 0;
  bool ever_durable_ = false;
  std::map<uint64_t, uint64_t> current_, durable_;  // word → version
};

// Sixty random operations on a few files, then a power cut, again and again.
void run_cuts(const Rig::Options& options, uint64_t seed, bool lose_meta) {
  Rig rig(options);
  Random random(seed);
  std::vector<CutFile> files;
  uint64_t next = 1;
  for (; next <= 4; ++next) files.emplace_back(rig, next);
  for (int cut = 0; cut < 6; ++cut) {
    for (int step = 0; step < 60; ++step) {
      CutFile& file = files[random.below(files.size())];
      const uint64_t what = step < 50 ? random.below(14) : 10 + random.below(4);
      if (what >= 10) {  // as a log grows, and the last of it is put right
        const uint64_t back = what > 11 ? std::min(file.end(), random.below(900)) : 0;
        file.write(rig, file.end() - back, 1 + random.below(300));
        if (what % 2 != 0) file.fsync(rig);
      } else if (what < 6) {
        file.write(rig, random.below(12'000), 1 + random.below(what < 4 ? 700 : 6000));
      } else if (what < 8) {
        file.fsync(rig);
      } else if (what == 8) {
        ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), file.name()).ok());
        rig.fs().forget(file.id(), 1);
        file = CutFile(rig, next++ % 200 + 1);
      } else {
        rig.clock().ms += 2000;
        rig.fs().maintenance().timer_round();
        (void)rig.fs().maintenance().reclaim();
      }
      if (testing::Test::HasFatalFailure()) return;
    }
    const uint64_t cut_seed = seed * 100 + static_cast<uint64_t>(cut);
    lose_meta ? rig.power_cut_losing_meta(cut_seed) : rig.power_cut(cut_seed);
    for (CutFile& file : files) {
      if (!file.reopen(rig)) {
        ASSERT_TRUE(lose_meta && !file.ever_durable()) << file.name() << " is gone, seed " << seed;
        file = CutFile(rig, next++ % 200 + 1);
      }
      file.check(rig, seed);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(rig.fs().status()->checksum_errors, 0U);
}

class Cut : public testing::TestWithParam<int> {};

TEST_P(Cut, KeepsEveryFsyncedByteAndShowsNobodyElses) {
  const auto seed = static_cast<uint64_t>(GetParam());
  Rig::Options options;
  options.blocks = 1024;  // small, so that blocks are reused
  options.checksums = seed % 3 != 0;
  run_cuts(options, seed, false);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Cut, testing::Range(1, 25));

// Neither META's cache nor DATA's keeps what it was not told to keep.
class CutOfBothCaches : public testing::TestWithParam<int> {};

TEST_P(CutOfBothCaches, KeepsEveryFsyncedByteAndShowsNobodyElses) {
  const auto seed = static_cast<uint64_t>(GetParam());
  Rig::Options options;
  options.blocks = 1024;
  options.meta_bytes = 4 << 20;
  options.forgetful_meta = true;
  options.checksums = seed % 3 != 0;
  run_cuts(options, seed, false);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CutOfBothCaches, testing::Range(101, 125));

// META in DRAM, kept by a log on DATA.
Rig::Options volatile_meta() {
  Rig::Options options;
  options.meta_class = pmem::MetaClass::kVolatile;
  options.meta_log = true;
  options.meta_bytes = 4 << 20;
  return options;
}

class CutOfVolatileMeta : public testing::TestWithParam<int> {};

TEST_P(CutOfVolatileMeta, LosesNothingFsyncedThoughMetaIsGone) {
  const auto seed = static_cast<uint64_t>(GetParam());
  Rig::Options options = volatile_meta();
  options.checksums = seed % 3 != 0;
  run_cuts(options, seed, true);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CutOfVolatileMeta, testing::Range(1, 13));

TEST(VolatileMeta, ACleanUnmountKeepsEverything) {
  Rig rig(volatile_meta());
  for (uint64_t n = 1; n < 20; ++n) {
    CutFile file(rig, n);
    file.write(rig, n, 1000);
  }
  rig.unmount_losing_meta();
  for (uint64_t n = 1; n < 20; ++n) {
    EXPECT_EQ(rig.read(rig.lookup("f" + std::to_string(n)), 0, 1 << 20).size(), (n + 1000) * 8);
  }
}

TEST(VolatileMeta, ANamespaceChangeIsSafeWithinASecond) {
  Rig rig(volatile_meta());
  (void)rig.create("f");
  rig.clock().ms += 1000;
  rig.fs().maintenance().timer_round();
  rig.power_cut_losing_meta(5);
  EXPECT_TRUE(rig.fs().lookup(rig.fs().root(), "f").ok());
}

// Which of two writes to one block the device keeps is its choice, sector by sector.
TEST(CutOfTwoOverwrites, EitherMayPersist) {
  std::set<int> found;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Rig::Options options;
    options.meta_bytes = 4 << 20;
    options.forgetful_meta = true;
    Rig rig(options);
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, Rig::filled(kBlockSize, 'a')).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    ASSERT_TRUE(rig.write(id, 0, Rig::filled(kBlockSize, 'b')).ok());
    ASSERT_TRUE(rig.write(id, 0, Rig::filled(kBlockSize, 'c')).ok());
    rig.power_cut(seed);
    const Content content = rig.read(rig.lookup("f"), 0, kBlockSize);
    ASSERT_EQ(content.size(), kBlockSize);
    for (uint64_t at = 0; at < kBlockSize; at += 512) {
      const auto sector = std::span(content).subspan(at, 512);
      ASSERT_TRUE(std::ranges::all_of(sector, [&](std::byte b) { return b == sector[0]; }));
      found.insert(static_cast<int>(sector[0]));
    }
    EXPECT_EQ(rig.fs().status()->checksum_errors, 0U);
  }
  EXPECT_EQ(found, (std::set<int>{'a', 'b', 'c'})) << "the cuts are not what they should be";
}

bool overlap(const std::vector<meta::Piece>& some, const std::vector<meta::Piece>& others) {
  const auto meet = [](const meta::Piece& a, const meta::Piece& b) {
    return !a.hole && !b.hole && a.block.value < b.block.value + b.length &&
           b.block.value < a.block.value + a.length;
  };
  return std::ranges::any_of(some, [&](const meta::Piece& a) {
    return std::ranges::any_of(others, [&](const meta::Piece& b) { return meet(a, b); });
  });
}

// The new owner of blocks that were freed and trimmed has its own data, or none of them.
TEST(CutAfterReuse, WhatWasFreedAndTrimmedIsNobodyElses) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const bool lose_meta = seed % 2 != 0, synced = seed % 4 < 2;
    Rig::Options options;
    options.blocks = 4096;
    options.meta_bytes = 4 << 20;
    options.meta_log = lose_meta;
    options.forgetful_meta = !lose_meta;
    Rig rig(options);
    const Content mine = Rig::filled(4 << 20, 'm'), theirs = Rig::filled(4 << 20, 't');
    const InodeId first = rig.create("first");
    ASSERT_TRUE(rig.write(first, 0, theirs).ok());
    ASSERT_TRUE(rig.fs().fsync(first, false).ok());
    const std::vector<meta::Piece> freed = rig.fs().engine().map(first, {}, 1024).value();
    ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "first").ok());
    rig.fs().forget(first, 1);
    ASSERT_TRUE(rig.fs().sync().ok());
    ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
    const InodeId second = rig.create("second");
    ASSERT_TRUE(rig.fs().fsync(second, false).ok());
    bool meet = false;
    for (uint64_t offset = 0; !meet && offset < (8U << 20); offset += mine.size()) {
      ASSERT_TRUE(rig.write(second, offset, mine).ok());
      meet = overlap(freed, rig.fs().engine().map(second, {}, 2048).value());
    }
    ASSERT_TRUE(meet) << "the device is too large to make blocks meet";
    ASSERT_TRUE(!synced || rig.fs().fsync(second, false).ok());
    lose_meta ? rig.power_cut_losing_meta(seed) : rig.power_cut(seed);
    EXPECT_FALSE(rig.fs().lookup(rig.fs().root(), "first").ok());
    const Content content = rig.read(rig.lookup("second"), 0, 8 << 20);
    EXPECT_GE(content.size(), synced ? mine.size() : 0);
    for (const std::byte b : content) {
      ASSERT_TRUE(b == std::byte{'m'} || (!synced && b == std::byte{0})) << "seed " << seed;
    }
    EXPECT_EQ(rig.fs().status()->checksum_errors, 0U);
  }
}

TEST(CutAfterSync, NothingOfAnyFileIsLost) {
  Rig rig;
  for (uint64_t n = 1; n < 20; ++n) {
    CutFile file(rig, n);
    file.write(rig, n, 4000);
  }
  ASSERT_TRUE(rig.fs().sync().ok());
  rig.power_cut(1);
  for (uint64_t n = 1; n < 20; ++n) {
    EXPECT_EQ(rig.read(rig.lookup("f" + std::to_string(n)), 0, 1 << 20).size(), (n + 4000) * 8);
  }
}

TEST(CutAfterRename, TheNameHoldsOldOrNewWhole) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rig rig;
    const InodeId old = rig.create("conf");
    ASSERT_TRUE(rig.write(old, 0, Rig::filled(9000, 'o')).ok());
    ASSERT_TRUE(rig.fs().fsync(old, false).ok());
    const InodeId fresh = rig.create("conf.tmp");
    ASSERT_TRUE(rig.write(fresh, 0, Rig::filled(7000, 'n')).ok());
    InodeId pushed;
    ASSERT_TRUE(rig.fs()
                    .rename(rig.fs().root(), "conf.tmp", rig.fs().root(), "conf", 0,
                            [&](InodeId id) { pushed = id; })
                    .ok());
    EXPECT_EQ(pushed, fresh);
    rig.power_cut(seed);
    EXPECT_EQ(rig.read(rig.lookup("conf"), 0, 10000), Rig::filled(7000, 'n'));
  }
}

}  // namespace
}  // namespace streamfs::data
