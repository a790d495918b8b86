// The policy of a ring thread: SCHED_IDLE beside idle CPUs only.
#include "fuse-fs/frontend/ring_scheduling.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "fuse-fs/frontend/ring_threads.h"

namespace streamfs::frontend {
namespace {

constexpr uint64_t kTick = 4'000'000;

TEST(IdleOrOther, AThreadIsIdleWhileNoMoreThreadsAreRunnableThanThereAreCpus) {
  IdleOrOther choice;
  uint64_t now = kTick;
  EXPECT_TRUE(choice.idle({now += kTick, 0, 16, 2, 2}));
  EXPECT_FALSE(choice.idle({now += kTick, 0, 16, 3, 2}));
  EXPECT_TRUE(choice.idle({now += kTick, 0, 16, 1, 2}));
}

TEST(IdleOrOther, AnIdleThreadThatWaitsLongForItsCpuIsNotIdleForASecond) {
  IdleOrOther choice;
  const uint64_t begin = kTick;
  EXPECT_TRUE(choice.idle({begin, 0, 16, 1, 2}));
  EXPECT_TRUE(choice.idle({begin + 1, 16 * IdleOrOther::kDelayMax, 16, 1, 2}));
  const uint64_t late = begin + 2, end = late + IdleOrOther::kOtherFor;
  EXPECT_FALSE(choice.idle({late, 16 * IdleOrOther::kDelayMax + 1, 16, 1, 2}));
  EXPECT_FALSE(choice.idle({end - 1, 0, 16, 1, 2}));
  EXPECT_TRUE(choice.idle({end, 0, 16, 1, 2}));
}

// As SCHED_OTHER it competes like any other thread.
TEST(IdleOrOther, AThreadThatIsNotIdleMayWait) {
  IdleOrOther choice;
  EXPECT_FALSE(choice.idle({kTick, 0, 16, 3, 2}));
  EXPECT_TRUE(choice.idle({2 * kTick, 100 * IdleOrOther::kDelayMax, 16, 2, 2}));
}

void be_a_ring_thread() {
  pthread_setname_np(pthread_self(), "fuse-ring-0");
}

// Returns whether the thread has the policy after some request within 30 s.
bool reaches(RingScheduler& ring, int policy) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (sched_getscheduler(0) != policy) {
    if (std::chrono::steady_clock::now() > end) return false;
    ring.request();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

// The file stands for /proc/loadavg, whose number of runnable threads depends on the whole machine.
TEST(RingScheduler, AThreadIsNotIdleWhileThreadsWaitForCpus) {
  if (!may_use_sched_idle()) GTEST_SKIP() << "needs CAP_SYS_NICE";
  std::thread([] {
    be_a_ring_thread();
    const int loadavg = memfd_create("loadavg", MFD_CLOEXEC);
    ASSERT_GE(loadavg, 0);
    const auto set_runnable = [loadavg](int threads) {
      const std::string text = "0.31 0.12 0.05 " + std::to_string(threads) + "/97 4711\n";
      ASSERT_EQ(ftruncate(loadavg, 0), 0);
      ASSERT_EQ(pwrite(loadavg, text.data(), text.size(), 0), std::ssize(text));
    };
    set_runnable(1);
    RingScheduler ring(true, loadavg);
    EXPECT_TRUE(reaches(ring, SCHED_IDLE));
    set_runnable(get_nprocs() + 1);
    EXPECT_TRUE(reaches(ring, SCHED_OTHER));
    set_runnable(get_nprocs());
    EXPECT_TRUE(reaches(ring, SCHED_IDLE));
  }).join();
}

TEST(RingScheduler, AThreadThatIsNoRingThreadKeepsItsPolicy) {
  std::thread([] {
    RingScheduler ring(true);
    for (int i = 0; i < 1000; ++i) ring.request();
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  }).join();
}

TEST(RingScheduler, ARingThreadIsNeverCancelled) {
  for (const bool may : {false, true}) {
    std::thread([may] {
      be_a_ring_thread();
      const RingScheduler ring(may);
      int state = PTHREAD_CANCEL_ENABLE;
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
      EXPECT_EQ(state, PTHREAD_CANCEL_DISABLE);
    }).join();
  }
}

TEST(RingScheduler, AThreadThatMayNotChangeItsPolicyKeepsIt) {
  std::thread([] {
    be_a_ring_thread();
    RingScheduler ring(false);
    for (int i = 0; i < 1000; ++i) ring.request();
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
  }).join();
}

TEST(RingScheduler, AThreadOfAnotherPolicyKeepsIt) {
  std::thread([] {
    be_a_ring_thread();
    const sched_param none{};
    ASSERT_EQ(sched_setscheduler(0, SCHED_BATCH, &none), 0);
    RingScheduler ring(true);
    for (int i = 0; i < 100; ++i) ring.request();
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
  }).join();
}

// A thread that ends while its file in /proc is read gives ESRCH.
TEST(RingThreads, ThreadsThatEndWhileTheirFaultsAreCountedAreLeftOut) {
  std::atomic<bool> over{false};
  std::thread coming_and_going([&] {
    while (!over) {
      std::vector<std::thread> threads;
      for (int i = 0; i < 8; ++i) threads.emplace_back([] {});
      for (std::thread& thread : threads) thread.join();
    }
  });
  for (int i = 0; i < 20'000; ++i) EXPECT_EQ(ring_thread_faults(), 0U);
  over = true;
  coming_and_going.join();
}

}  // namespace
}  // namespace streamfs::frontend
