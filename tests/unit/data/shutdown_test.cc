// A mount that is shut down writes nothing more, and the next mount recovers as after a kill.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/types.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/data/gate.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

constexpr size_t kShutBytes = 3 * kBlockSize;

TEST(Gate, NobodyGetsInOnceItIsClosedAndWhoIsInsideIsWaitedFor) {
  Gate gate;
  std::atomic<bool> inside{false}, leave{false};
  std::thread request([&] {
    const Gate::Pass pass(gate);
    EXPECT_TRUE(static_cast<bool>(pass));
    inside = true;
    while (!leave) std::this_thread::yield();
  });
  while (!inside) std::this_thread::yield();
  EXPECT_TRUE(gate.close());
  EXPECT_FALSE(gate.close());
  EXPECT_FALSE(static_cast<bool>(Gate::Pass(gate)));
  std::atomic<bool> empty{false};
  std::thread closer([&] {
    gate.wait_until_empty();
    EXPECT_TRUE(leave);
    empty = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(empty);
  leave = true;
  request.join();
  closer.join();
}

class Shutdown : public testing::TestWithParam<ShutdownMode> {};

TEST_P(Shutdown, NothingIsWrittenAfterItAndWhatWasSyncedIsThereAgain) {
  Rig rig(Rig::with_log());
  const InodeId synced = rig.create("synced");
  ASSERT_TRUE(rig.write(synced, 0, Rig::filled(kShutBytes, 1)).ok());
  ASSERT_TRUE(rig.fs().fsync(synced, false).ok());
  const InodeId loose = rig.create("loose");
  ASSERT_TRUE(rig.write(loose, 0, Rig::filled(kShutBytes, 2)).ok());
  ASSERT_TRUE(rig.fs().shut_down(GetParam()).ok());
  EXPECT_EQ(rig.fs().shut_down(GetParam()).error().code, EIO);
  EXPECT_TRUE(rig.fs().gate().closed());

  const uint64_t writes = rig.device().stats()->written_bytes;
  const uint64_t flushes = rig.device().stats()->flushes;
  rig.clock().ms += 60'000;
  rig.fs().maintenance().timer_round();
  rig.fs().maintenance().reclaim_round();
  EXPECT_FALSE(rig.fs().sync().ok());
  EXPECT_TRUE(rig.fs().unmount().ok());
  EXPECT_EQ(rig.device().stats()->written_bytes, writes);
  EXPECT_EQ(rig.device().stats()->flushes, flushes);

  rig.kill();
  EXPECT_EQ(rig.read(rig.lookup("synced"), 0, kShutBytes), Rig::filled(kShutBytes, 1));
  if (GetParam() == ShutdownMode::kDefault) {
    EXPECT_EQ(rig.read(rig.lookup("loose"), 0, kShutBytes), Rig::filled(kShutBytes, 2));
  }
  EXPECT_TRUE(rig.check().problems.empty());
}

TEST_P(Shutdown, APowerCutAfterItTakesOnlyWhatItsModeLeaves) {
  Rig rig(Rig::with_log());
  const InodeId file = rig.create("file");
  ASSERT_TRUE(rig.write(file, 0, Rig::filled(kShutBytes, 1)).ok());
  ASSERT_TRUE(rig.fs().shut_down(GetParam()).ok());
  rig.power_cut_losing_meta(1);
  const auto found = rig.fs().lookup(rig.fs().root(), "file");
  if (GetParam() != ShutdownMode::kNoLogFlush) {
    ASSERT_TRUE(found.ok());
    const uint64_t size = GetParam() == ShutdownMode::kDefault ? kShutBytes : 0;
    EXPECT_EQ(found->size, size);
  }
}

TEST(ShutdownNames, EveryInodeThatTheKernelKnowsIsForgotten) {
  Rig rig;
  const InodeId kept = rig.create("kept");
  const InodeId left = rig.create("left");
  rig.fs().forget(left, 1);
  std::vector<InodeId> told;
  rig.fs().on_shut_down([&](InodeId id) { told.push_back(id); });
  ASSERT_TRUE(rig.fs().shut_down(ShutdownMode::kNoLogFlush).ok());
  EXPECT_EQ(told, (std::vector{kept, rig.fs().root()}));
}

INSTANTIATE_TEST_SUITE_P(All, Shutdown,
                         testing::Values(ShutdownMode::kDefault, ShutdownMode::kLogFlush,
                                         ShutdownMode::kNoLogFlush));

}  // namespace
}  // namespace streamfs::data
