// The small parts: thread names, worker pools, settings of the kernel.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "fuse-fs/frontend/comm_cache.h"
#include "fuse-fs/frontend/kernel_tuning.h"
#include "fuse-fs/frontend/worker_pool.h"

namespace streamfs::frontend {
namespace {

class Folder {
 public:
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "streamfs-parts.XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  void put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name) << text;
  }
  std::string get(const std::string& name) const {
    std::ifstream in(path_ + "/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
};

class HandClock final : public Clock {
 public:
  Timestamp now() override { return {}; }
  uint64_t monotonic_ms() override { return now_ms; }
  uint64_t now_ms = 1000;
};

TEST(CommCache, ANameIsReadAgainAfterAMoment) {
  const Folder proc;
  HandClock clock;
  CommCache comms(clock, proc.path());
  proc.put("7/comm", "bash\n");
  EXPECT_EQ(comms.comm_of(7), "bash");
  proc.put("7/comm", "sqlite3\n");
  EXPECT_EQ(comms.comm_of(7), "bash");
  clock.now_ms += 100;
  EXPECT_EQ(comms.comm_of(7), "sqlite3");
}

TEST(CommCache, ThreadsThatShareASlotKeepTheirOwnNames) {
  const Folder proc;
  HandClock clock;
  CommCache comms(clock, proc.path());
  proc.put("1/comm", "one\n");
  proc.put("257/comm", "other\n");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(comms.comm_of(1), "one");
    EXPECT_EQ(comms.comm_of(257), "other");
  }
}

TEST(CommCache, WhoIsGoneHasNoName) {
  const Folder proc;
  CommCache comms(system_clock(), proc.path());
  EXPECT_EQ(comms.comm_of(4711), "");
  EXPECT_EQ(comms.comm_of(0), "");
}

TEST(WorkerPool, RunsEverythingPostedBeforeItEnds) {
  std::atomic<int> ran{0};
  {
    WorkerPool pool("test", 3);
    for (int i = 0; i < 100; ++i) pool.post([&ran] { ++ran; });
  }
  EXPECT_EQ(ran, 100);
}

TEST(WorkerPool, AsManyWaitAtOnceAsItMayHaveThreads) {
  std::promise<void> go;
  const std::shared_future<void> gate = go.get_future().share();
  std::atomic<int> inside{0};
  WorkerPool pool("test", 4);  // last: its threads end before what they use
  for (int i = 0; i < 4; ++i) {
    pool.post([&] {
      ++inside;
      gate.wait();
    });
  }
  for (int i = 0; i < 500 && inside < 4; ++i) usleep(1000);
  EXPECT_EQ(inside, 4);
  go.set_value();
}

TEST(KernelTuning, ReadAheadAndDirtyShareAreRaised) {
  const Folder sysfs;
  for (const char* name : {"read_ahead_kb", "max_ratio", "strict_limit"}) {
    sysfs.put(std::string("0:39/") + name, "1\n");
  }
  raise_limits(39, false, sysfs.path());
  EXPECT_EQ(sysfs.get("0:39/read_ahead_kb"), "2048\n");
  EXPECT_EQ(sysfs.get("0:39/strict_limit"), "1\n");
  raise_limits(39, true, sysfs.path());
  EXPECT_EQ(sysfs.get("0:39/strict_limit"), "0\n");
  raise_limits(40, true, sysfs.path());  // no such mount: nothing happens
}

TEST(KernelTuning, WhatMayBeDirtyIsBoundedAndFreeAgain) {
  const Folder sysfs;
  for (const char* name : {"max_bytes", "max_ratio", "strict_limit"}) {
    sysfs.put(std::string("0:39/") + name, "7\n");
  }
  limit_dirty(39, 1 << 20, true, sysfs.path());
  EXPECT_EQ(sysfs.get("0:39/max_bytes"), "1048576\n");
  EXPECT_EQ(sysfs.get("0:39/strict_limit"), "1\n");
  limit_dirty(39, std::nullopt, false, sysfs.path());
  EXPECT_EQ(sysfs.get("0:39/max_ratio"), "50\n");
  EXPECT_EQ(sysfs.get("0:39/strict_limit"), "1\n");
  limit_dirty(39, std::nullopt, true, sysfs.path());
  EXPECT_EQ(sysfs.get("0:39/strict_limit"), "0\n");
}

}  // namespace
}  // namespace streamfs::frontend
