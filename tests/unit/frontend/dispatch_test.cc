// Where a request runs: on the thread that took it, on a worker of its processor, or on a pool.
#include "fuse-fs/frontend/dispatch.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "base/waiting.h"
#include "fuse-fs/frontend/op_times.h"
#include "fuse-fs/frontend/wait_trap.h"

namespace streamfs::frontend {
namespace {

TEST(Dispatch, EachStartRunsWhereItsTransportCanWait) {
  Dispatcher dispatcher;
  dispatcher.expect_rings(4, Wakes::kSameCpu);
  const auto where = [&dispatcher](From from, Start start) {
    std::promise<std::thread::id> ran;
    dispatcher.run(start, from, [&ran] { ran.set_value(std::this_thread::get_id()); });
    return ran.get_future().get();
  };
  const std::thread::id here = std::this_thread::get_id();
  EXPECT_EQ(where(From::kDevice, Start::kTry), here);
  EXPECT_EQ(where(From::kDevice, Start::kWorker), here);
  EXPECT_NE(where(From::kDevice, Start::kKernel), here);
  EXPECT_EQ(where(From::kRing, Start::kTry), here);
  EXPECT_NE(where(From::kRing, Start::kWorker), here);
  EXPECT_NE(where(From::kRing, Start::kKernel), here);
}

// Returns whether each run of a task might wait, where the task hands off when it may not.
std::vector<bool> runs_of(From from, Start start) {
  Dispatcher dispatcher;
  dispatcher.expect_rings(4, Wakes::kSameCpu);
  std::vector<bool> runs;
  std::promise<void> ended;
  dispatcher.run(start, from, [&] {
    runs.push_back(may_wait());
    if (!may_wait()) return hand_off();
    ended.set_value();
  });
  ended.get_future().wait();
  return runs;
}

TEST(Dispatch, ATryThatWouldWaitRunsAgainOnAWorker) {
  EXPECT_EQ(runs_of(From::kDevice, Start::kTry), std::vector{true});
  EXPECT_EQ(runs_of(From::kRing, Start::kTry), (std::vector{false, true}));
  EXPECT_EQ(runs_of(From::kRing, Start::kWorker), std::vector{true});
  EXPECT_EQ(runs_of(From::kRing, Start::kKernel), std::vector{true});
  EXPECT_TRUE(may_wait());
}

// Returns the processors on which a worker of the calling thread's processor may run.
cpu_set_t cpus_of_worker(Dispatcher& rings) {
  std::promise<cpu_set_t> allowed;
  rings.run(Start::kWorker, From::kRing, [&allowed] {
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    allowed.set_value(mine);
  });
  return allowed.get_future().get();
}

TEST(Dispatch, AWorkerStaysOnTheProcessorOfItsRing) {
  Dispatcher rings;
  rings.expect_rings(4, Wakes::kSameCpu);
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const cpu_set_t found = cpus_of_worker(rings);
    EXPECT_TRUE(CPU_EQUAL(&found, &one)) << cpu;
  }
  sched_setaffinity(0, sizeof before, &before);
}

TEST(Dispatch, AWorkerMovesWhereTheDeviceWakesAnyProcessor) {
  Dispatcher rings;
  rings.expect_rings(4, Wakes::kAnyCpu);
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  const cpu_set_t found = cpus_of_worker(rings);
  EXPECT_TRUE(CPU_EQUAL(&found, &mine));
}

// The last entry of a queue stays free for the WRITEs that the others wait for.
TEST(Dispatch, TheRequestWithAQueuesLastEntryDoesNotPush) {
  Dispatcher rings;
  rings.expect_rings(2, Wakes::kSameCpu);
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  std::promise<void> written;
  std::promise<bool> first, second;
  rings.run(Start::kKernel, From::kRing,
            [&] { first.set_value(rings.push([&] { written.get_future().wait(); })); });
  rings.run(Start::kKernel, From::kRing, [&] { second.set_value(rings.push([] {})); });
  EXPECT_FALSE(second.get_future().get());
  written.set_value();
  EXPECT_TRUE(first.get_future().get());
  sched_setaffinity(0, sizeof before, &before);
}

TEST(Dispatch, OnlyWhatWritesWaitsOnAWorkerFromTheStart) {
  EXPECT_EQ(start_of(Op::kFallocate, false), Start::kWorker);
  EXPECT_EQ(start_of(Op::kLseek, false), Start::kKernel);
  EXPECT_EQ(start_of(Op::kUnlink, false), Start::kTry);
  EXPECT_EQ(start_of(Op::kUnlink, true), Start::kWorker);  // dirsync
  EXPECT_EQ(start_of(Op::kGetattr, true), Start::kTry);
}

using WaitTrapDeathTest = ::testing::Test;

TEST(WaitTrapDeathTest, ARingThreadThatWaitsEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT((trap_waits(), fsync(0), std::abort()), ::testing::KilledBySignal(SIGSYS), "");
}

TEST(Dispatch, AThreadThatRepliesNeverPushes) {
  Dispatcher dispatcher;
  dispatcher.expect_rings(4, Wakes::kSameCpu);
  std::promise<std::pair<std::thread::id, std::thread::id>> ran;
  dispatcher.run(Start::kKernel, From::kRing, [&] {
    std::thread::id pusher;
    dispatcher.push([&pusher] { pusher = std::this_thread::get_id(); });
    ran.set_value({std::this_thread::get_id(), pusher});
  });
  const auto [replier, pusher] = ran.get_future().get();
  EXPECT_NE(pusher, std::thread::id());
  EXPECT_NE(pusher, replier);
}

}  // namespace
}  // namespace streamfs::frontend
