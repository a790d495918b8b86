// Drawn operations on a filesystem with an intent log, and a cut at any fence of META, or write,
// flush or trim of DATA.
#include <gtest/gtest.h>
#include <linux/falloc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/data/intent_rig.h"

namespace streamfs::data::intent_test {
namespace {

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
