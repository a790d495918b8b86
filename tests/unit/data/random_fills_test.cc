// A full disk takes every write into a preallocated range, between kills and power cuts. The gate
// runs 30 random fills; STREAMFS_LONG=1 runs 1,000.
#include <gtest/gtest.h>
#include <linux/falloc.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine.h"
#include "tests/unit/data/rig.h"
#include "tests/unit/data/small_disk.h"

namespace streamfs::data {
namespace {

class Fills {
 public:
  explicit Fills(uint64_t seed)
      : seed_(seed), random_(seed), log_(seed % 2 == 0), rig_(options()) {}

  void run() {
    preallocate();
    if (testing::Test::HasFatalFailure()) return;
    fill(rig_, "x");
    if (testing::Test::HasFatalFailure()) return;
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 40; ++i) {
        write();
        if (testing::Test::HasFatalFailure()) return;
      }
      come_back();
      check();
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_TRUE(rig_.check().sound()) << "seed " << seed_;
    EXPECT_EQ(rig_.fs().status()->checksum_errors, 0U);
  }

 private:
  struct File {
    std::string name;
    InodeId id;
    uint64_t first, count;         // blocks set aside
    std::vector<std::string> may;  // of each of them: what it held since the last fsync
  };

  Rig::Options options() const {
    Rig::Options options = small(log_);
    options.blocks = log_ ? 5120 : 1536;
    options.checksums = seed_ % 3 != 0;
    options.mount.write_behind_mib = seed_ % 5 == 0 ? 0 : 4;
    return options;
  }

  uint64_t below(uint64_t limit) { return random_() % limit; }

  void preallocate() {
    constexpr std::array kModes = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
                                   FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE};
    // Blocks keep their earlier owner's data, so that a leak would be seen.
    fill(rig_, "before");
    for (int i = 0; rig_.fs().unlink(rig_.fs().root(), "before" + std::to_string(i)).ok(); ++i) {
    }
    rig_.kill();
    ASSERT_TRUE(rig_.fs().maintenance().reclaim().ok());
    for (int i = 0; i < 4; ++i) {
      File file{"f" + std::to_string(i), {}, below(40), 20 + below(200), {}};
      file.id = rig_.create(file.name);
      if (below(2) == 0) {
        ASSERT_TRUE(rig_.write(file.id, below(200) * kBlockSize, blocks(1 + below(30), 'w')).ok());
      }
      const int mode = kModes.at(below(kModes.size()));
      if ((mode & FALLOC_FL_ZERO_RANGE) == 0) {
        ASSERT_TRUE(rig_.fs().truncate(file.id, 0).ok());
      }
      ASSERT_TRUE(
          rig_.fs().allocate(file.id, mode, file.first * kBlockSize, file.count * kBlockSize).ok());
      file.may.assign(file.count, std::string(1, '\0'));
      ASSERT_TRUE(rig_.fs().fsync(file.id, false).ok());
      files_.push_back(file);
    }
    if (below(2) == 0) come_back();
  }

  void write() {
    File& file = files_[below(files_.size())];
    const uint64_t at = below(file.count),
                   count = 1 + below(std::min<uint64_t>(file.count - at, 9));
    const auto what = static_cast<char>('A' + below(26));
    const Result<void> done =
        rig_.write(file.id, (file.first + at) * kBlockSize, blocks(count, what));
    ASSERT_TRUE(done.ok()) << "seed " << seed_ << ": " << done.error().message();
    for (uint64_t i = at; i < at + count; ++i) file.may[i] += what;
    if (below(6) == 0) {
      const Result<void> synced = rig_.fs().fsync(file.id, below(2) == 0);
      ASSERT_TRUE(synced.ok()) << "seed " << seed_ << ": " << synced.error().message();
      for (std::string& each : file.may) each = std::string(1, each.back());
    }
    if (below(20) == 0) (void)rig_.fs().maintenance().reclaim();
  }

  // Writes that were not made durable may be there or not.
  void come_back() {
    const uint64_t how = below(4);
    lost_ = how >= 2;
    if (how == 0) rig_.remount();
    if (how == 1) rig_.kill();
    if (how == 2) rig_.power_cut(seed_);
    if (how == 3) log_ ? rig_.power_cut_losing_meta(seed_) : rig_.power_cut(seed_ + 1);
    lost_ = lost_ || how == 1;
    for (File& file : files_) file.id = rig_.lookup(file.name);
  }

  void check() {
    for (File& file : files_) {
      const uint64_t end = (file.first + file.count) * kBlockSize;
      if (rig_.fs().attributes(file.id)->size < end) {
        ASSERT_TRUE(rig_.fs().truncate(file.id, end).ok());
      }
      const Content content = rig_.read(file.id, file.first * kBlockSize, file.count * kBlockSize);
      ASSERT_EQ(content.size(), file.count * kBlockSize);
      for (uint64_t i = 0; i < file.count; ++i) {
        for (uint64_t sector = 0; sector < kBlockSize; sector += 512) {
          const auto found = static_cast<char>(content[i * kBlockSize + sector]);
          const bool right =
              lost_ ? (file.may[i].find(found) != std::string::npos) : file.may[i].back() == found;
          ASSERT_TRUE(right) << "seed " << seed_ << ": " << file.name << " block " << i << " shows "
                             << static_cast<int>(found);
        }
        settle(file, i, content[i * kBlockSize]);
      }
      ASSERT_TRUE(rig_.fs().fsync(file.id, false).ok());
    }
  }

  // A cut may have left sectors of several writes: the block is of one from now on.
  void settle(File& file, uint64_t i, std::byte first) {
    if (file.may[i].size() > 1) {
      const Content whole(kBlockSize, first);
      ASSERT_TRUE(rig_.write(file.id, (file.first + i) * kBlockSize, whole).ok());
    }
    file.may[i] = std::string(1, static_cast<char>(first));
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
  const bool log_;
  Rig rig_;
  bool lost_ = false;
  std::vector<File> files_;
};

// In parts, for the time limit of a test.
constexpr uint64_t kParts = 10;

class RandomFills : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomFills, LeaveWhatWasSetAsideWritable) {
  const uint64_t fills = long_or(30, 1000);
  for (uint64_t seed = 1 + GetParam(); seed <= fills; seed += kParts) {
    Fills(seed).run();
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, RandomFills, testing::Range(uint64_t{0}, kParts));

}  // namespace
}  // namespace streamfs::data
