// Many callers, one action: who shares one, who takes a turn, and whose error it is.
#include "fuse-fs/data/group_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

#include "base/result.h"

namespace streamfs::data {
namespace {

constexpr size_t kOthers = 8;

// While the first caller's action runs, others come; it ends when all of them must be waiting.
template <typename First, typename Other>
void beside(const First& first, const Other& other) {
  std::latch begun(1);
  std::thread one([&] {
    first([&] {
      begun.count_down();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    });
  });
  begun.wait();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kOthers; ++i) threads.emplace_back([&other, i] { other(i); });
  one.join();
  for (std::thread& each : threads) each.join();
}

TEST(GroupRun, WhoComesMeanwhileSharesTheNext) {
  GroupRun group;
  std::atomic<int> actions{0};
  beside(
      [&](const auto& hold) {
        EXPECT_TRUE(group
                        .run([&]() -> Result<void> {
                          ++actions;
                          hold();
                          return {};
                        })
                        .ok());
      },
      [&](size_t) {
        EXPECT_TRUE(group
                        .run([&]() -> Result<void> {
                          ++actions;
                          return {};
                        })
                        .ok());
      });
  EXPECT_EQ(actions, 2);
}

TEST(GroupRun, WhoseQuestionIsAnsweredDoesNotAct) {
  GroupRun group;
  std::atomic<int> level{0}, actions{0};
  const auto act = [&]() -> Result<void> {
    ++actions;
    ++level;
    return {};
  };
  beside(
      [&](const auto& hold) {
        EXPECT_TRUE(group
                        .run_until([&] { return level >= 1; },
                                   [&] {
                                     hold();
                                     return act();
                                   })
                        .ok());
      },
      // Half of them are served by what runs already, the others by one more, or two.
      [&](size_t i) {
        const int wanted = i % 2 == 0 ? 1 : 3;
        EXPECT_TRUE(group.run_until([&, wanted] { return level >= wanted; }, act).ok());
        EXPECT_GE(level, wanted);
      });
  EXPECT_EQ(actions, 3);
}

TEST(GroupRun, AnErrorIsOfWhoActedAndTheOthersTakeTheirTurns) {
  GroupRun group;
  std::atomic<int> actions{0}, failed{0};
  const auto fail = [&]() -> Result<void> {
    ++actions;
    return Error{EIO};
  };
  beside(
      [&](const auto& hold) {
        const auto done = group.run_until([] { return false; },
                                          [&] {
                                            hold();
                                            return fail();
                                          });
        if (!done.ok()) ++failed;
      },
      [&](size_t) {
        if (!group.run_until([] { return false; }, fail).ok()) ++failed;
      });
  EXPECT_EQ(failed, 1 + static_cast<int>(kOthers));
  EXPECT_EQ(actions, 1 + static_cast<int>(kOthers));
}

// A caller's turn comes at any time between others' calls.
TEST(GroupRun, ManyCallersAreAllServed) {
  GroupRun group;
  std::atomic<uint64_t> level{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kOthers; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const uint64_t wanted = level + 1;
        ASSERT_TRUE(group
                        .run_until([&] { return level >= wanted; },
                                   [&]() -> Result<void> {
                                     ++level;
                                     return {};
                                   })
                        .ok());
        ASSERT_GE(level, wanted);
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

}  // namespace
}  // namespace streamfs::data
