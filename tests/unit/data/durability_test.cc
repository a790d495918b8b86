// When data and names are durable: epochs, fsync and sync, and META that needs a sync of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

// ---- Epochs

TEST(Epoch, ConcurrentFsyncsShareOneFlush) {
  Rig::Options options;
  options.faulty = false;
  Rig rig(options);
  constexpr size_t kThreads = 8;
  std::vector<InodeId> files;
  for (size_t t = 0; t < kThreads; ++t) {
    files.push_back(rig.create("f" + std::to_string(t)));
    ASSERT_TRUE(rig.write(files.back(), 0, Rig::filled(4096, 1)).ok());
  }
  const auto fsync = [&](size_t t) { ASSERT_TRUE(rig.fs().fsync(files[t], false).ok()); };
  rig.ram().flush_ms = 400;
  const uint64_t before = rig.ram().flushes;
  std::vector<std::thread> threads;
  threads.emplace_back(fsync, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  // The first flush runs during these writes: it does not cover them, the next covers all.
  for (size_t t = 1; t < kThreads; ++t) {
    ASSERT_TRUE(rig.write(files[t], 0, Rig::filled(4096, 2)).ok());
    threads.emplace_back(fsync, t);
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(rig.ram().flushes - before, 2U);
}

// A thread in fsync() waits for a flush that covers its own data, whichever thread issues it. Other
// threads' flushes begin between a write and its fsync, so several fsyncs share one flush.
TEST(Epoch, WritersThatFsyncSideBySideAllSucceed) {
  Rig::Options options;
  options.faulty = false;
  Rig rig(options);
  rig.ram().flush_ms = 1;
  constexpr uint64_t kThreads = 8, kWrites = 100;
  std::vector<InodeId> files;
  for (uint64_t t = 0; t < kThreads; ++t) files.push_back(rig.create("f" + std::to_string(t)));
  const uint64_t before = rig.ram().flushes;
  std::vector<std::thread> threads;
  for (const InodeId id : files) {
    threads.emplace_back([&rig, id] {
      for (uint64_t i = 0; i < kWrites; ++i) {
        ASSERT_TRUE(rig.write(id, i * kBlockSize, Rig::filled(kBlockSize, 1)).ok());
        std::this_thread::sleep_for(std::chrono::microseconds((i + id.value) % 8 * 150));
        const auto synced = rig.fs().fsync(id, false);
        ASSERT_TRUE(synced.ok()) << i << ": " << synced.error().message();
        ASSERT_FALSE(rig.fs().engine().dirty(id));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LT(rig.ram().flushes - before, kThreads * kWrites / 2);
}

TEST(Epoch, AWriteDuringAnFsyncIsNotForgotten) {
  Rig::Options options;
  options.faulty = false;
  Rig rig(options);
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(4096, 1)).ok());
  rig.ram().flush_ms = 300;
  std::thread syncer([&] { ASSERT_TRUE(rig.fs().fsync(id, false).ok()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_TRUE(rig.write(id, 4096, Rig::filled(4096, 2)).ok());
  syncer.join();
  EXPECT_TRUE(rig.fs().engine().dirty(id));
  rig.clock().ms += 1001;
  rig.fs().maintenance().timer_round();
  EXPECT_FALSE(rig.fs().engine().dirty(id));
}

TEST(Epoch, AnOverwriteWithoutChecksumsIsFlushedByItself) {
  Rig::Options options;
  options.checksums = false;
  options.faulty = false;
  Rig rig(options);
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(4096, 1)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(4096, 2)).ok());
  ASSERT_TRUE(rig.fs().engine().commit_inode(id, 1).ok());  // another's epoch, ended before
  const uint64_t before = rig.ram().flushes;
  rig.clock().ms += 1001;
  rig.fs().maintenance().timer_round();
  EXPECT_GT(rig.ram().flushes, before);
}

TEST(Epoch, ASyncWithNothingToSyncFlushesNothing) {
  Rig rig;
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(100, 1)).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
  const uint64_t before = rig.ram().flushes;
  ASSERT_TRUE(rig.fs().sync().ok());
  EXPECT_EQ(rig.ram().flushes, before);
}

TEST(Epoch, AnFsyncWithoutNewDataFlushesNothing) {
  Rig rig;
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(100, 1)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  const uint64_t before = rig.ram().flushes;
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  EXPECT_EQ(rig.ram().flushes, before);
}

TEST(Epoch, ClosesByItselfWhenIdleAndWhenOld) {
  Rig rig;
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(5000, 'x')).ok());
  rig.fs().maintenance().timer_round();
  EXPECT_TRUE(rig.fs().engine().dirty(id));
  rig.clock().ms += 1001;
  rig.fs().maintenance().timer_round();
  EXPECT_FALSE(rig.fs().engine().dirty(id));
  for (int i = 0; i < 11; ++i) {  // never idle, but old in the end
    ASSERT_TRUE(rig.write(id, 0, Rig::filled(5000, 'y')).ok());
    rig.fs().maintenance().timer_round();
    if (i < 9) {
      EXPECT_TRUE(rig.fs().engine().dirty(id));
    }
    rig.clock().ms += 501;
  }
  rig.fs().maintenance().timer_round();
  EXPECT_FALSE(rig.fs().engine().dirty(id));
}

TEST(Epoch, AFailedFlushIsNeverFollowedByAPromise) {
  Rig rig;
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(100, 1)).ok());
  blockdev::Faults faults;
  faults.fail_flushes_after = 0;
  rig.device().set_faults(faults);
  EXPECT_FALSE(rig.fs().fsync(id, false).ok());
  rig.device().set_faults({});
  EXPECT_FALSE(rig.fs().fsync(id, false).ok()) << "what the flush lost is not known";
  EXPECT_EQ(rig.fs().write(id, 0, Rig::filled(1, 1)).error().code, EROFS);
  EXPECT_TRUE(rig.fs().status()->degraded_read_only);
  EXPECT_FALSE(rig.fs().status()->degraded_reason.empty());
}

// The data's flush and the log's are sent at once; the device tells its error to the first alone.
TEST(Epoch, AFlushThatFailedForOneIsNoSuccessForAnother) {
  Rig::Options options;
  options.blocks = 8192;
  options.meta_bytes = 2 << 20;
  options.meta_class = pmem::MetaClass::kVolatile;
  options.meta_log = true;
  options.faulty = false;
  Rig rig(options);
  const InodeId with_data = rig.create("f"), with_name = rig.create("g");
  ASSERT_TRUE(rig.write(with_data, 0, Rig::filled(100, 1)).ok());
  std::atomic<int> flushes{0};
  std::atomic<bool> told{false};
  const auto wait_for = [](const auto& happened) {  // or too long, for a test that fails
    for (int ms = 0; !happened() && ms < 5000; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  rig.ram().on_flush = [&]() -> Result<void> {
    if (++flushes == 1) {
      wait_for([&] { return flushes >= 2; });
      return Error{EIO, "lost"};
    }
    wait_for([&] { return told.load(); });
    return {};
  };
  std::thread first([&] {
    EXPECT_FALSE(rig.fs().fsync(with_data, false).ok());
    told = true;
  });
  wait_for([&] { return flushes >= 1; });
  (void)rig.create("h");
  EXPECT_FALSE(rig.fs().fsync(with_name, false).ok());
  first.join();
  EXPECT_EQ(flushes, 2);
  rig.ram().on_flush = nullptr;
}

// ---- META classes

TEST(SyncedMeta, AFreeIsSyncedBeforeItsBlocksAreTrimmed) {
  Rig::Options options;
  options.meta_class = pmem::MetaClass::kSynced;
  options.faulty = false;
  Rig rig(options);
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(1 << 20, 'a')).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
  ASSERT_TRUE(rig.fs().truncate(id, 0).ok());
  ASSERT_TRUE(rig.fs().engine().commit_inode(id, 0).ok());
  const uint64_t before = rig.fs().status()->pmem.syncs;
  uint64_t at_trim = 0;
  rig.ram().on_trim = [&] { at_trim = rig.fs().status()->pmem.syncs; };
  ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
  EXPECT_GT(rig.ram().trimmed_blocks, 0U);
  EXPECT_GT(at_trim, before);
}

TEST(SyncedMeta, AnFsyncSyncsAndANamespaceChangeIsSyncedWithinASecond) {
  Rig::Options options;
  options.meta_class = pmem::MetaClass::kSynced;
  Rig rig(options);
  const auto syncs = [&] { return rig.fs().status()->pmem.syncs; };
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(10, 'a')).ok());
  uint64_t before = syncs();
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  EXPECT_GT(syncs(), before);
  (void)rig.create("g");
  before = syncs();
  rig.clock().ms += 1000;
  rig.fs().maintenance().timer_round();
  EXPECT_GT(syncs(), before);
}

TEST(SyncedMeta, DirsyncWaitsForEachChange) {
  Rig::Options options;
  options.meta_class = pmem::MetaClass::kSynced;
  options.mount.dirsync = true;
  Rig rig(options);
  const uint64_t before = rig.fs().status()->pmem.syncs;
  (void)rig.create("f");
  EXPECT_GT(rig.fs().status()->pmem.syncs, before);
}

}  // namespace
}  // namespace streamfs::data
