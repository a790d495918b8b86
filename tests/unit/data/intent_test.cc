// The intent log under a filesystem: what an fsync costs, and what a cut leaves of it.
#include <gtest/gtest.h>
#include <linux/falloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/data/rig.h"

namespace streamfs::data::intent_test {
namespace {

std::vector<std::byte> blocks(uint64_t count, int value) {
  return Rig::filled(count * kBlockSize, value);
}

Rig::Options forgetful() {
  Rig::Options options = Rig::with_intent_log();
  options.forgetful_meta = true;
  return options;
}

// Lets the mount begin its logs, so that later counts have only what a test does.
void begin(Rig& rig) {
  const InodeId id = rig.create("first");
  ASSERT_TRUE(rig.write(id, 0, blocks(1, 1)).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
}

struct Costs {
  uint64_t flushes, writes, fences;
};
Costs costs(Rig& rig) {
  return {rig.device().flushes(), rig.device().writes(), rig.fs().status()->pmem.fences};
}

// The entries are fenced before the record, so that no cut leaves the record alone.
TEST(Intent, AnFsyncOfNewDataIsTwoFences) {
  Rig rig(Rig::with_intent_log());
  begin(rig);
  const InodeId id = rig.create("f");
  const Costs before = costs(rig);
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(rig.write(id, i * kBlockSize, blocks(1, 3)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, i % 2 == 0).ok());
  }
  const Costs after = costs(rig);
  EXPECT_EQ(after.flushes, before.flushes);
  EXPECT_EQ(after.writes, before.writes);
  EXPECT_EQ(after.fences - before.fences, 20);
}

TEST(Intent, AnFsyncOfAnOverwriteIsTwoFencesFromTheSecondOn) {
  Rig rig(Rig::with_intent_log());
  begin(rig);
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, blocks(4, 1)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  ASSERT_TRUE(rig.fs().sync().ok());  // home
  const Costs before = costs(rig);
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(rig.write(id, i % 4 * kBlockSize, blocks(1, 3)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, true).ok());
  }
  const Costs after = costs(rig);
  EXPECT_EQ(after.flushes, before.flushes);
  EXPECT_EQ(after.writes, before.writes);
  EXPECT_EQ(after.fences - before.fences, 20);
  EXPECT_TRUE(rig.check().problems.empty());
}

TEST(Intent, WhatIsOverwrittenBeforeItsRoundIsNeverWritten) {
  Rig rig(Rig::with_intent_log());
  begin(rig);
  const InodeId id = rig.create("f");
  const uint64_t before = rig.device().writes();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(rig.write(id, 0, blocks(1, i)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  }
  EXPECT_EQ(rig.device().writes(), before);
  const uint64_t log = rig.fs().status()->log_bytes;
  ASSERT_TRUE(rig.fs().sync().ok());
  const uint64_t chunks = (rig.fs().status()->log_bytes - log) / kBlockSize;
  EXPECT_LE(rig.device().writes() - before, 1 + chunks);
  EXPECT_EQ(rig.read(id, 0, kBlockSize), blocks(1, 19));
}

TEST(Intent, WhatWasAbsorbedSurvivesKillsAndCuts) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rig rig(forgetful());
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, blocks(3, 1)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    ASSERT_TRUE(rig.write(id, kBlockSize, blocks(1, 2)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    seed % 2 == 0 ? rig.kill() : rig.power_cut(seed);
    std::vector<std::byte> want = blocks(3, 1);
    std::fill_n(want.begin() + kBlockSize, kBlockSize, std::byte{2});
    EXPECT_EQ(rig.read(rig.lookup("f"), 0, want.size()), want) << seed;
    rig.power_cut(seed);  // nothing has gone home
    EXPECT_EQ(rig.read(rig.lookup("f"), 0, want.size()), want) << seed;
    ASSERT_TRUE(rig.write(rig.create("g"), 0, blocks(1, 3)).ok());  // the log begins anew
    rig.power_cut(seed);
    EXPECT_EQ(rig.read(rig.lookup("f"), 0, want.size()), want) << seed;
    EXPECT_TRUE(rig.check().problems.empty());
  }
}

// The cut comes in an fsync. It keeps all that was stored and not fenced but for some regions of
// META: the record must not count without its entries and checksums.
TEST(Intent, NoRecordCountsWithoutItsEntriesAndChecksums) {
  for (const uint64_t length : {uint64_t{1}, uint64_t{70}}) {  // absorbed, and with a flush
    for (uint64_t event = 1; event <= 30; ++event) {
      Rig::Options options = forgetful();
      options.cuts_within = true;
      options.checksums = event % 2 == 0 || length > 1;
      Rig rig(options);
      const InodeId other = rig.create("other"), id = rig.create("f"), last = rig.create("last");
      ASSERT_TRUE(rig.write(id, 0, blocks(length, 1)).ok());
      ASSERT_TRUE(rig.fs().fsync(id, false).ok());
      // New blocks of the file are then those of the other one.
      ASSERT_TRUE(rig.write(other, 0, blocks(4 * length, 9)).ok());
      const uint64_t rest = rig.fs().engine().blocks().free_blocks() - 8;
      ASSERT_TRUE(rig.write(rig.create("rest"), 0, blocks(rest, 8)).ok());
      ASSERT_TRUE(rig.fs().sync().ok());
      ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "other").ok());
      rig.fs().forget(other, 1);
      ASSERT_TRUE(rig.fs().maintenance().reclaim(TrimQueue::Pace::kNow).ok());
      const meta::Geometry geometry = rig.fs().engine().geometry();
      rig.lose([geometry](uint64_t offset) {
        const auto ring = geometry.region_byte(meta::RegionKind::kRings, offset);
        return geometry.region_byte(meta::RegionKind::kChecksums, offset) ||
               (ring && *ring >= geometry.super().ring_count * meta::kRingSize);
      });
      ASSERT_TRUE(rig.write(last, 0, blocks(1, 3)).ok());
      ASSERT_TRUE(rig.fs().fsync(last, false).ok());  // overwrites take new blocks
      ASSERT_TRUE(rig.write(id, 0, blocks(length, 2)).ok());
      rig.power_off_after(event / 2 + 1);
      const bool synced = rig.fs().fsync(id, false).ok() && !rig.power_is_off();
      rig.power_cut(1);
      const auto content = rig.read(rig.lookup("f"), 0, length * kBlockSize);
      EXPECT_TRUE(content == blocks(length, 2) || (!synced && content == blocks(length, 1)))
          << length << ", " << event;
    }
  }
}

// Blocks that a crash left in the log go home with the first write of the next mount.
TEST(Intent, TheFirstWriteAfterACrashMayBeCutAnywhere) {
  for (uint64_t event = 1; event < 40; ++event) {
    Rig::Options options = forgetful();
    options.cuts_within = true;
    Rig rig(options);
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, blocks(20, 1)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    rig.kill();
    rig.power_off_after(event);
    (void)rig.write(rig.create("g"), 0, blocks(1, 2));
    rig.power_cut(event);
    ASSERT_EQ(rig.read(rig.lookup("f"), 0, 20 * kBlockSize), blocks(20, 1)) << event;
  }
}

// Syncs names until the next sync takes a snapshot of META. Returns how many there were; `most`:
// the number to stop at.
int sync_until_snapshot(Rig& rig, int most) {
  uint64_t before = rig.fs().status()->log_bytes;
  for (int i = 0; i < most; ++i) {
    rig.create("name" + std::to_string(i));
    EXPECT_TRUE(rig.fs().sync().ok());
    const uint64_t now = rig.fs().status()->log_bytes;
    if (now - before > 16 * kBlockSize) return i;
    before = now;
  }
  return most;
}

// An fsync comes while the snapshot is written, which then has to bring its data home.
TEST(Intent, ASnapshotOfMetaBringsHomeWhatItMayShow) {
  Rig::Options options = forgetful();
  options.cuts_within = true;
  int snapshot_at = 0;
  {
    Rig rig(options);
    begin(rig);
    rig.create("f");
    snapshot_at = sync_until_snapshot(rig, 1000);
    ASSERT_LT(snapshot_at, 1000);
  }
  for (uint64_t event = 1; event < 60; event += 2) {
    Rig rig(options);
    begin(rig);
    const InodeId id = rig.create("f");
    ASSERT_EQ(sync_until_snapshot(rig, snapshot_at), snapshot_at);
    rig.create("last");
    bool synced = false;
    const auto fsync = [&] {
      rig.power_off_after(event);
      EXPECT_TRUE(rig.write(id, 0, blocks(20, 1)).ok());
      synced = rig.fs().fsync(id, false).ok() && !rig.power_is_off();
    };
    // The first round has nothing to ship: its flush is the event before the snapshot.
    rig.at_next_event([&] { rig.at_next_event(fsync); });
    (void)rig.fs().sync();
    rig.power_cut(event);
    const auto content = rig.read(rig.lookup("f"), 0, 20 * kBlockSize);
    ASSERT_TRUE(!synced || content == blocks(20, 1)) << event;
  }
}

TEST(Intent, AFailedWriteThatPushedCachedDataOutCostsTheNextFsyncAFlush) {
  for (uint64_t seed = 1; seed < 6; ++seed) {
    Rig rig(Rig::with_intent_log());
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, blocks(1, 1)).ok());
    ASSERT_TRUE(rig.fs().sync().ok());
    ASSERT_TRUE(rig.write(id, kBlockSize, blocks(1, 2)).ok());  // cached
    blockdev::Faults faults;
    faults.fail_writes_after = 1;
    faults.failures = 1;
    rig.device().set_faults(faults);
    EXPECT_FALSE(rig.write(id, 0, blocks(2, 2)).ok());
    rig.device().set_faults({});
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    rig.power_cut(seed);
    EXPECT_EQ(rig.read(rig.lookup("f"), kBlockSize, kBlockSize), blocks(1, 2)) << seed;
  }
}

TEST(Intent, NothingIsTrimmedBeforeTheLogsBegin) {
  Rig rig(Rig::with_intent_log());
  const InodeId id = rig.create("a");
  ASSERT_TRUE(rig.write(id, 0, blocks(4, 5)).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
  ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "a").ok());
  rig.fs().forget(id, 1);
  ASSERT_TRUE(rig.fs().maintenance().free_orphans().ok());  // freed in META alone
  rig.kill();
  ASSERT_TRUE(rig.fs().maintenance().reclaim(TrimQueue::Pace::kGivesWay).ok());
  rig.power_cut_losing_meta(1);
  const auto found = rig.fs().lookup(rig.fs().root(), "a");
  if (!found.ok()) return;
  EXPECT_EQ(rig.read(found->id, 0, 4 * kBlockSize), blocks(4, 5));
}

TEST(Intent, ADeviceThatFailsWritesForAWhileLosesNothing) {
  Rig rig(Rig::with_intent_log());
  const InodeId id = rig.create("f"), other = rig.create("other");
  ASSERT_TRUE(rig.fs().sync().ok());
  ASSERT_TRUE(rig.write(id, 0, blocks(1, 1)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  ASSERT_TRUE(rig.write(other, 0, blocks(1, 2)).ok());
  blockdev::Faults faults;
  faults.fail_writes_after = 0;
  rig.device().set_faults(faults);
  for (int i = 0; i < 8; ++i) {
    rig.clock().ms += 1000;
    rig.fs().maintenance().timer_round();
  }
  EXPECT_FALSE(rig.fs().sync().ok());
  EXPECT_FALSE(rig.fs().status()->degraded_read_only);
  rig.device().set_faults({});
  ASSERT_TRUE(rig.fs().sync().ok());
  rig.power_cut_losing_meta(1);
  EXPECT_EQ(rig.read(rig.lookup("f"), 0, kBlockSize), blocks(1, 1));
  EXPECT_EQ(rig.read(rig.lookup("other"), 0, kBlockSize), blocks(1, 2));
}

// Each thread appends to a file of its own and counts its appends in the file's first block.
TEST(Intent, ThreadsSideBySideLoseNothingTheyWerePromised) {
  constexpr uint64_t kThreads = 3, kAppends = 150;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Rig rig(forgetful());
    std::array<InodeId, kThreads> files;
    for (uint64_t i = 0; i < kThreads; ++i) files[i] = rig.create("f" + std::to_string(i));
    std::atomic<bool> done{false};
    std::thread rounds([&] {
      while (!done) {
        rig.clock().ms += 1000;
        rig.fs().maintenance().timer_round();
        rig.fs().maintenance().reclaim_round();
      }
    });
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&rig, id = files[i]] {
        for (uint64_t append = 1; append <= kAppends; ++append) {
          const int value = static_cast<int>(append);
          ASSERT_TRUE(rig.write(id, append * kBlockSize, blocks(1, value)).ok());
          ASSERT_TRUE(rig.write(id, 0, blocks(1, value)).ok());
          ASSERT_TRUE(rig.fs().fsync(id, append % 2 == 0).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    done = true;
    rounds.join();
    EXPECT_GT(rig.fs().status()->intent.fsyncs, kThreads * kAppends / 2);
    rig.power_cut(seed);
    for (uint64_t i = 0; i < kThreads; ++i) {
      const InodeId id = rig.lookup("f" + std::to_string(i));
      EXPECT_EQ(rig.read(id, 0, kBlockSize), blocks(1, kAppends)) << seed;
      for (uint64_t append = 1; append <= kAppends; ++append)
        ASSERT_EQ(rig.read(id, append * kBlockSize, kBlockSize),
                  blocks(1, static_cast<int>(append)))
            << seed << ", " << i << ", " << append;
    }
    EXPECT_TRUE(rig.check().problems.empty());
  }
}

// ---- Everything at once: drawn operations, and a cut at any fence, write, flush or trim.

constexpr uint64_t kSector = 512;

// The content that a file may have after a cut: for each sector and for the size every value since
// the last promise.
class Model {
 public:
  void write(uint64_t offset, uint64_t length, int value) {
    size(std::max(size_, offset + length));
    for (uint64_t at = offset / kSector; at < (offset + length) / kSector; ++at) set(at, value);
  }
  void truncate(uint64_t to) {
    for (uint64_t at = to / kSector; at < sectors_.size(); ++at) set(at, 0);
    size(to);
  }
  void punch(uint64_t offset, uint64_t length) {
    const uint64_t end = std::min(offset + length, size_);
    for (uint64_t at = offset / kSector; at < end / kSector; ++at) set(at, 0);
  }
  void promised() {
    sizes_ = {size_};
    for (auto& values : sectors_) values = {values.back()};
  }
  // Compares a file after a cut, and goes on from it.
  void check_and_take(const std::vector<std::byte>& content, const std::string& where) {
    EXPECT_TRUE(std::ranges::find(sizes_, content.size()) != sizes_.end())
        << where << ": size " << content.size() << ", last " << size_;
    for (uint64_t at = 0; at < content.size() / kSector; ++at) {
      const int value = static_cast<int>(content[at * kSector]);
      for (uint64_t i = 0; i < kSector; ++i)
        ASSERT_EQ(static_cast<int>(content[at * kSector + i]), value) << where << ": torn";
      const bool known = at < sectors_.size()
                             ? std::ranges::find(sectors_[at], value) != sectors_[at].end()
                             : value == 0;
      ASSERT_TRUE(known) << where << ": sector " << at << " has " << value << ", wanted "
                         << (at < sectors_.size() ? sectors_[at].back() : -1);
      set(at, value);
    }
    size_ = content.size();
    sectors_.resize(size_ / kSector, {0});
    promised();
  }
  uint64_t size() const { return size_; }

 private:
  void set(uint64_t at, int value) {
    if (at >= sectors_.size()) sectors_.resize(at + 1, {0});
    sectors_[at].push_back(value);
  }
  void size(uint64_t to) {
    size_ = to;
    sizes_.push_back(to);
  }
  uint64_t size_ = 0;
  std::vector<uint64_t> sizes_{0};
  std::vector<std::vector<int>> sectors_;
};

// Runs drawn operations on three files until the power goes, and compares what is left.
class Drawn {
 public:
  Drawn(Rig& rig, uint64_t seed)
      : rig_(rig), random_(seed), where_("seed " + std::to_string(seed)) {
    for (File& file : files_) make(file);
  }
  void run(int operations) {
    for (int i = 0; i < operations && !rig_.power_is_off(); ++i) step();
  }
  // Returns false if the cut hit a change of names: either result is right.
  bool check() {
    if (names_change_) return false;
    for (File& file : files_) {
      const auto found = rig_.fs().lookup(rig_.fs().root(), file.name);
      EXPECT_TRUE(found.ok()) << where_;
      if (!found.ok()) continue;
      file.id = found->id;
      file.model.check_and_take(rig_.read(file.id, 0, found->size), where_ + ", " + file.name);
    }
    EXPECT_TRUE(rig_.check().problems.empty()) << where_;
    return true;
  }

 private:
  struct File {
    std::string name;
    InodeId id;
    Model model;
  };
  uint64_t draw(uint64_t below) { return random_() % below; }
  void make(File& file) {
    file.id = rig_.create(file.name);
    file.model = {};
  }
  void write(File& file, uint64_t offset, uint64_t length) {
    value_ = value_ % 250 + 1;
    file.model.write(offset, length, value_);
    (void)rig_.write(file.id, offset, Rig::filled(length, value_));
  }
  void fsync(File& file, bool data_only) {
    const bool done = rig_.fs().fsync(file.id, data_only).ok();
    if (done && !rig_.power_is_off()) file.model.promised();
  }
  void replace(File& file) {
    names_change_ = true;
    (void)rig_.fs().unlink(rig_.fs().root(), file.name);
    rig_.fs().forget(file.id, 1);
    if (rig_.power_is_off()) return;
    make(file);
    names_change_ = rig_.power_is_off();
  }
  void rename(File& from, File& to) {
    names_change_ = true;
    const Result<void> done =
        rig_.fs().rename(rig_.fs().root(), from.name, rig_.fs().root(), to.name, 0, {});
    if (rig_.power_is_off()) return;
    ASSERT_TRUE(done.ok()) << done.error().message();
    rig_.fs().forget(to.id, 1);
    to.id = from.id;
    to.model = std::move(from.model);
    to.model.promised();
    make(from);
    names_change_ = rig_.power_is_off();
  }
  void sync() {
    const bool done = rig_.fs().sync().ok();
    if (!done || rig_.power_is_off()) return;
    for (File& file : files_) file.model.promised();
  }
  void step() {
    File& file = files_[draw(files_.size())];
    const uint64_t block = draw(12);
    switch (draw(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return write(file, block * kBlockSize, (1 + draw(3)) * kBlockSize);
      case 4:
        return write(file, draw(96) * kSector, (1 + draw(12)) * kSector);
      case 5:
      case 6:
      case 7:
        return fsync(file, draw(2) == 0);
      case 8: {
        const uint64_t size = draw(16 * kBlockSize / kSector) * kSector;
        file.model.truncate(size);
        (void)rig_.fs().truncate(file.id, size);
        return;
      }
      case 9:
        file.model.punch(block * kBlockSize, 2 * kBlockSize);
        (void)rig_.fs().allocate(file.id, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                 block * kBlockSize, 2 * kBlockSize);
        return;
      case 10:
        return replace(file);
      case 11:
        return sync();
      case 12:
        rig_.clock().ms += 1000;
        rig_.fs().maintenance().timer_round();
        return;
      case 13:
        rig_.fs().maintenance().reclaim_round();
        return;
      case 14: {
        File& other = files_[draw(files_.size())];
        if (&other != &file) rename(file, other);
        return;
      }
      default:
        if (draw(2) == 0) return write(file, 0, 70 * kBlockSize);
        file.model.punch(block * kBlockSize, 2 * kBlockSize);
        (void)rig_.fs().allocate(file.id, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
                                 block * kBlockSize, 2 * kBlockSize);
        return;
    }
  }

  Rig& rig_;
  std::mt19937_64 random_;
  const std::string where_;
  std::array<File, 3> files_{{{"a", {}, {}}, {"b", {}, {}}, {"c", {}, {}}}};
  int value_ = 0;
  bool names_change_ = false;
};

TEST(Intent, NoCutAnywhereTakesAnythingPromised) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    Rig::Options options = forgetful();
    options.cuts_within = true;
    options.mount.write_behind_mib = 1;
    Rig rig(options);
    Drawn drawn(rig, seed);
    for (int cut = 0; cut < 3; ++cut) {
      rig.power_off_after(1 + (seed * 7 + static_cast<uint64_t>(cut) * 31) % 120);
      drawn.run(60);
      rig.power_cut(seed + static_cast<uint64_t>(cut));
      if (!drawn.check() || HasFatalFailure() || HasNonfatalFailure()) break;
    }
    if (HasFailure()) return;
  }
}

// A database: a page is written only after the journal that covers it was synced.
class Database {
 public:
  Database(Rig& rig, uint64_t seed) : rig_(rig), random_(seed) {
    journal_ = rig.create("journal");
    pages_ = rig.create("pages");
    other_ = rig.create("other");
    EXPECT_TRUE(rig.write(pages_, 0, blocks(kPages, 0)).ok());
    EXPECT_TRUE(rig.fs().sync().ok());
  }
  void run(int transactions) {
    for (int i = 0; i < transactions && !rig_.power_is_off(); ++i) transaction();
  }
  // The newest record that the journal has, and that a page shows.
  uint64_t in_journal() {
    const auto found = rig_.fs().lookup(rig_.fs().root(), "journal");
    EXPECT_TRUE(found.ok());
    const uint64_t records = found->size / kBlockSize;
    for (uint64_t i = 0; i < records; ++i)
      EXPECT_EQ(rig_.read(found->id, i * kBlockSize, kBlockSize), blocks(1, value_of(i + 1)));
    return records;
  }
  uint64_t in_pages() {
    uint64_t newest = 0;
    for (const std::byte byte : rig_.read(rig_.lookup("pages"), 0, kPages * kBlockSize))
      newest = std::max(newest, static_cast<uint64_t>(byte));
    return newest;
  }
  // Returns the last record that was synced so long ago.
  uint64_t synced(uint64_t milliseconds_ago) const {
    uint64_t records = 0;
    for (const auto& [at, record] : synced_)
      records = at + milliseconds_ago <= rig_.clock().ms ? record : records;
    return records;
  }

 private:
  static constexpr uint64_t kPages = 16;
  static int value_of(uint64_t record) { return static_cast<int>(record); }
  uint64_t draw(uint64_t below) { return random_() % below; }
  void transaction() {
    ++record_;
    (void)rig_.write(journal_, (record_ - 1) * kBlockSize, blocks(1, value_of(record_)));
    if (!rig_.fs().fsync(journal_, draw(2) == 0).ok() || rig_.power_is_off()) return;
    synced_.emplace_back(rig_.clock().ms, record_);
    for (uint64_t pages = draw(4); pages > 0; --pages)
      (void)rig_.write(pages_, draw(kPages) * kBlockSize, blocks(1, value_of(record_)));
    if (draw(3) == 0) (void)rig_.fs().fsync(pages_, false);
    if (draw(8) == 0) (void)rig_.write(other_, draw(8) * kBlockSize, blocks(70, 200));
    if (draw(8) == 0) (void)rig_.fs().fsync(other_, false);
    if (draw(4) == 0) {
      rig_.clock().ms += 500;
      rig_.fs().maintenance().timer_round();
    }
    if (draw(8) == 0) rig_.fs().maintenance().reclaim_round();
  }

  Rig& rig_;
  std::mt19937_64 random_;
  InodeId journal_, pages_, other_;
  uint64_t record_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> synced_;  // when, record
};

TEST(Intent, WithoutMetaTheFilesAreAPrefixOfAllCommits) {
  uint64_t most_lost = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Rig::Options options = forgetful();
    options.cuts_within = true;
    options.mount.write_behind_mib = 1;
    Rig rig(options);
    Database database(rig, seed);
    rig.power_off_after(1 + seed * 13 % 500);
    database.run(100);
    rig.power_cut_losing_meta(seed);
    const uint64_t journal = database.in_journal();
    ASSERT_GE(journal, database.in_pages()) << seed;
    ASSERT_GE(journal, database.synced(IntentBarrier::kAgeMaxMs)) << seed;
    ASSERT_TRUE(rig.check().problems.empty()) << seed;
    most_lost = std::max(most_lost, database.synced(0) - journal);
  }
  EXPECT_GT(most_lost, 0) << "no fsync was absorbed";
}

}  // namespace
}  // namespace streamfs::data::intent_test
