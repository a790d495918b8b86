// Operations that a ring thread tries: they finish without a device, or would wait and change
// nothing that a second run would change again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <future>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "base/waiting.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

constexpr uint64_t kSomeBlocks = 5 * kBlockSize;

// Tries an operation. Returns whether it finished; it then succeeded.
template <typename Operation>
bool finishes(const Operation& operation) {
  const Trying trying;
  const auto done = operation();
  if (is_would_wait(done)) return false;
  EXPECT_TRUE(done.ok()) << done.error().message();
  return true;
}

TEST(Try, AWriteThatTheCacheTakesFinishes) {
  Rig rig;
  const InodeId id = rig.create("a");
  ASSERT_TRUE(rig.fs().sync().ok());
  const uint64_t before = rig.ram().writes;
  EXPECT_TRUE(finishes([&] { return rig.write(id, 0, Rig::filled(kSomeBlocks + 9, 1)); }));
  EXPECT_TRUE(finishes([&] { return rig.write(id, kSomeBlocks + 9, Rig::filled(100, 2)); }));
  EXPECT_EQ(rig.ram().writes, before);
  EXPECT_EQ(rig.read(id, kSomeBlocks + 8, 3),
            (std::vector{std::byte{1}, std::byte{2}, std::byte{2}}));
}

TEST(Try, AWriteOfABlockOnTheDeviceWouldWaitAndLeavesIt) {
  Rig rig;
  const InodeId id = rig.create("a");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(kSomeBlocks, 1)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  for (const uint64_t length : {kBlockSize, uint64_t{100}}) {  // whole, and to be read first
    EXPECT_FALSE(finishes([&] { return rig.write(id, 0, Rig::filled(length, 2)); }));
    EXPECT_EQ(rig.read(id, 0, kSomeBlocks), Rig::filled(kSomeBlocks, 1));
  }
  const uint64_t app_bytes = rig.fs().status()->app_bytes;
  EXPECT_EQ(app_bytes, kSomeBlocks);
  EXPECT_TRUE(rig.check().sound());
}

TEST(Try, AWriteThatTheCacheRefusesLeavesNoBlockBehind) {
  Rig rig(Rig::writing_at_once());
  const InodeId id = rig.create("a");
  ASSERT_TRUE(rig.fs().sync().ok());
  const uint64_t free = rig.fs().space().free_blocks;
  EXPECT_FALSE(finishes([&] { return rig.write(id, 0, Rig::filled(kSomeBlocks, 1)); }));
  EXPECT_EQ(rig.fs().space().free_blocks, free);
  EXPECT_EQ(rig.fs().attributes(id)->size, 0U);
}

TEST(Try, AReadFinishesUnlessItNeedsTheDevice) {
  Rig rig;
  const InodeId id = rig.create("a");
  ASSERT_TRUE(rig.write(id, kSomeBlocks, Rig::filled(kBlockSize, 1)).ok());
  std::vector<std::byte> out(kSomeBlocks + kBlockSize);
  const auto read = [&] { return rig.fs().read(id, 0, out); };
  EXPECT_TRUE(finishes(read));  // a hole, and what is cached
  EXPECT_EQ(out.back(), std::byte{1});
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  EXPECT_FALSE(finishes(read));
  out.resize(kSomeBlocks);
  EXPECT_TRUE(finishes(read));
}

TEST(Try, AnFsyncFinishesIfNothingIsLeftToFlush) {
  Rig rig;
  const InodeId id = rig.create("a");
  const auto fsync = [&] { return rig.fs().fsync(id, false); };
  EXPECT_TRUE(finishes(fsync));
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(kBlockSize, 1)).ok());
  EXPECT_FALSE(finishes(fsync));
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  EXPECT_TRUE(finishes(fsync));
  Rig logged(Rig::with_log());
  const InodeId other = logged.create("a");
  EXPECT_FALSE(finishes([&] { return logged.fs().fsync(other, false); }));
}

TEST(Try, ATruncateFinishesUnlessItCutsABlockOnTheDevice) {
  Rig rig;
  const InodeId id = rig.create("a");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(kSomeBlocks, 1)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  EXPECT_FALSE(finishes([&] { return rig.fs().truncate(id, kBlockSize + 1); }));
  EXPECT_EQ(rig.fs().attributes(id)->size, kSomeBlocks);
  EXPECT_TRUE(finishes([&] { return rig.fs().truncate(id, kBlockSize); }));
  EXPECT_TRUE(finishes([&] { return rig.fs().truncate(id, kSomeBlocks); }));
  EXPECT_EQ(rig.read(id, kBlockSize, kBlockSize), Rig::filled(kBlockSize, 0));
}

TEST(Try, AWaitIsCounted) {
  Rig rig;
  ASSERT_TRUE(rig.fs().sync().ok());
  const uint64_t before = waits_while_trying();
  const InodeId id = rig.create("a");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(kSomeBlocks, 1)).ok());
  {
    const Trying trying;
    ASSERT_TRUE(rig.fs().sync().ok());  // may not be tried
  }
  EXPECT_GT(waits_while_trying(), before);
}

TEST(Try, ARangeThatIsHeldWouldWait) {
  RangeLock lock;
  const RangeLock::Guard held(lock, 0, 9, RangeLock::Access::kShared);
  const Trying trying;
  EXPECT_TRUE(RangeLock::Guard(lock, 5, 6, RangeLock::Access::kShared));
  EXPECT_FALSE(RangeLock::Guard(lock, 5, 6, RangeLock::Access::kExclusive));
  EXPECT_TRUE(RangeLock::Guard(lock, 10, 20, RangeLock::Access::kExclusive));
}

// Each operation that would wait runs again where it may wait, as in the frontend. Content equals
// that of a model, META is sound, and no try waits for the device.
class RandomTries : public ::testing::TestWithParam<bool> {};

TEST_P(RandomTries, EndAsIfNobodyHadTried) {
  constexpr uint64_t kFiles = 3, kFileBlocks = 24;
  const uint64_t waits = waits_while_trying();
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    Rig::Options options = GetParam() ? Rig::with_log() : Rig::Options();
    options.mount.write_behind_mib = seed % 3 == 0 ? 0 : 1;
    Rig rig(options);
    std::mt19937 random(seed);
    std::map<uint64_t, std::vector<std::byte>> holds;
    std::vector<InodeId> files;
    for (uint64_t i = 0; i < kFiles; ++i) files.push_back(rig.create("f" + std::to_string(i)));
    int finished = 0, again = 0;
    const auto run = [&](const auto& operation) {
      if (finishes(operation)) {
        ++finished;
        return;
      }
      ++again;
      const auto done = operation();
      EXPECT_TRUE(done.ok()) << done.error().message();
    };
    for (int step = 0; step < 1500; ++step) {
      const uint64_t which = random() % kFiles;
      const InodeId id = files[which];
      std::vector<std::byte>& bytes = holds[which];
      const uint64_t offset = random() % (kFileBlocks * kBlockSize);
      const bool whole = random() % 2 == 0;
      const uint64_t from = whole ? round_down(offset, kBlockSize) : offset;
      const uint64_t length = whole ? (1 + random() % 4) * kBlockSize : 1 + random() % 9000;
      rig.clock().ms += random() % 3;
      switch (random() % 8) {
        case 0: {
          bytes.resize(from);
          run([&] { return rig.fs().truncate(id, from); });
          break;
        }
        case 1:
          run([&] { return rig.fs().fsync(id, random() % 2 == 0); });
          break;
        case 2: {
          std::vector<std::byte> out(length);
          size_t got = 0;
          run([&] {
            const Result<size_t> done = rig.fs().read(id, from, out);
            if (done) got = *done;
            return done;
          });
          const uint64_t end =
              std::clamp<uint64_t>(from + length, from, std::max<uint64_t>(bytes.size(), from));
          ASSERT_EQ(got, end - from);
          ASSERT_TRUE(std::equal(out.begin(), out.begin() + static_cast<int64_t>(got),
                                 bytes.begin() + static_cast<int64_t>(got == 0 ? 0 : from)));
          break;
        }
        case 3:
          ASSERT_TRUE(rig.fs().sync().ok());
          break;
        default: {
          const auto content = Rig::filled(length, static_cast<int>(1 + random() % 250));
          if (bytes.size() < from + length) bytes.resize(from + length);
          std::ranges::copy(content, bytes.begin() + static_cast<int64_t>(from));
          run([&] { return rig.write(id, from, content); });
        }
      }
    }
    EXPECT_GT(finished, 100) << "seed " << seed;
    EXPECT_GT(again, 100) << "seed " << seed;
    for (uint64_t i = 0; i < kFiles; ++i)
      EXPECT_EQ(rig.read(files[i], 0, holds[i].size() + 1), holds[i]) << "seed " << seed;
    ASSERT_TRUE(rig.fs().sync().ok());
    rig.power_cut(seed);
    for (uint64_t i = 0; i < kFiles; ++i)
      EXPECT_EQ(rig.read(rig.lookup("f" + std::to_string(i)), 0, holds[i].size() + 1), holds[i]);
    EXPECT_TRUE(rig.check().sound()) << "seed " << seed;
  }
  EXPECT_EQ(waits_while_trying(), waits);
}

INSTANTIATE_TEST_SUITE_P(Metas, RandomTries, ::testing::Bool());

}  // namespace
}  // namespace streamfs::data
