// A scrub reads everything, finds every damaged block, gives way and stops.
#include "fuse-fs/data/scrub.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/types.h"
#include "fuse-fs/data/filesystem.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

class ScrubTest : public testing::Test {
 protected:
  InodeId file(const std::string& name, uint64_t blocks) {
    const InodeId id = rig_.create(name);
    EXPECT_TRUE(rig_.write(id, 0, Rig::filled(blocks * kBlockSize, name[0])).ok());
    return id;
  }
  void damage(InodeId id, uint64_t file_block) {
    const BlockNo block = rig_.fs().engine().map(id, FileBlock{file_block}, 1)->front().block;
    rig_.ram().block(block.value)[77] ^= std::byte{1};
  }
  ScrubStatus wait() {
    for (int i = 0; i < 1000; ++i) {
      const ScrubStatus now = rig_.fs().scrub_status();
      if (now.state != ScrubStatus::State::kRunning) return now;
      std::this_thread::sleep_for(milliseconds(10));
    }
    ADD_FAILURE() << "still running after 10 s";
    return {};
  }
  ScrubStatus scrub() {
    EXPECT_TRUE(rig_.fs().start_scrub().ok());
    return wait();
  }

  Rig rig_;
};

TEST_F(ScrubTest, NothingWasSaidBeforeTheFirst) {
  EXPECT_EQ(rig_.fs().scrub_status().state, ScrubStatus::State::kNever);
}

TEST_F(ScrubTest, ASoundFilesystemIsReadWhole) {
  file("a", 700);
  file("b", 1);
  const InodeId sparse = rig_.create("c");
  ASSERT_TRUE(rig_.write(sparse, uint64_t{1} << 40, Rig::filled(kBlockSize, 'c')).ok());
  ASSERT_TRUE(rig_.fs().sync().ok());
  const ScrubStatus done = scrub();
  EXPECT_EQ(done.state, ScrubStatus::State::kDone);
  EXPECT_EQ(done.damaged, 0U);
  EXPECT_EQ(done.inodes, 4U);  // and the root
  EXPECT_EQ(done.bytes, 702 * kBlockSize);
}

TEST_F(ScrubTest, EveryDamagedBlockIsFoundAndNamed) {
  const InodeId a = file("a", 700), b = file("b", 3);
  file("c", 5);
  ASSERT_TRUE(rig_.fs().sync().ok());
  damage(a, 1);
  damage(a, 300);
  damage(a, 699);
  damage(b, 0);
  const ScrubStatus done = scrub();
  EXPECT_EQ(done.state, ScrubStatus::State::kDone);
  EXPECT_EQ(done.damaged, 4U);
  ASSERT_EQ(done.findings.size(), 4U);
  EXPECT_EQ(done.findings[1].inode, a);
  EXPECT_NE(done.findings[1].what.find("offset 1228800"), std::string::npos);
  EXPECT_EQ(done.findings[3].inode, b);
  EXPECT_EQ(scrub().damaged, 4U) << "a second one starts from the beginning";
}

TEST_F(ScrubTest, WhatIsRemovedMeanwhileIsNoDamage) {
  rig_.ram().read_ms = 1;
  std::vector<std::string> names;
  for (int i = 0; i < 50; ++i) {
    names.push_back("f" + std::to_string(i));
    rig_.fs().forget(file(names.back(), 4), 1);
  }
  ASSERT_TRUE(rig_.fs().sync().ok());
  ASSERT_TRUE(rig_.fs().start_scrub().ok());
  for (const std::string& name : names) ASSERT_TRUE(rig_.fs().unlink(rig_.fs().root(), name).ok());
  ASSERT_TRUE(rig_.fs().sync().ok());
  EXPECT_EQ(wait().damaged, 0U);
}

TEST_F(ScrubTest, OneAtATimeAndItStopsAtOnce) {
  rig_.ram().read_ms = 20;
  file("a", 2000);
  ASSERT_TRUE(rig_.fs().sync().ok());
  ASSERT_TRUE(rig_.fs().start_scrub().ok());
  EXPECT_EQ(rig_.fs().start_scrub().error().code, EBUSY);
  rig_.fs().stop_scrub();
  const ScrubStatus stopped = rig_.fs().scrub_status();
  EXPECT_EQ(stopped.state, ScrubStatus::State::kStopped);
  EXPECT_LT(stopped.bytes, 2000 * kBlockSize);
  rig_.fs().stop_scrub();
  rig_.ram().read_ms = 0;
  EXPECT_EQ(scrub().bytes, 2000 * kBlockSize);
}

TEST_F(ScrubTest, AnUnmountEndsIt) {
  rig_.ram().read_ms = 20;
  file("a", 2000);
  ASSERT_TRUE(rig_.fs().start_scrub().ok());
  EXPECT_TRUE(rig_.fs().unmount().ok());
  EXPECT_EQ(rig_.fs().scrub_status().state, ScrubStatus::State::kStopped);
}

TEST_F(ScrubTest, GivesWayToPrograms) {
  const InodeId busy = rig_.create("busy");
  file("a", 1024);  // four pieces
  ASSERT_TRUE(rig_.fs().sync().ok());
  rig_.ram().read_ms = 5;
  std::atomic<bool> end{false};
  std::thread program([&] {
    std::vector<std::byte> out(1);
    while (!end) (void)rig_.fs().read(busy, 0, out);
  });
  const auto begun = SteadyClock::now();
  scrub();
  const auto took = SteadyClock::now() - begun;
  end = true;
  program.join();
  EXPECT_GT(took, milliseconds(3 * 5 * 10));  // of four pieces one may find nobody to give way to
  EXPECT_LT(took, milliseconds(4000)) << "rests must not be rested for";
}

}  // namespace
}  // namespace streamfs::data
