// Requests that have no answer, and the mount's end.
#include "fuse-fs/frontend/patience.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <thread>

#include "fuse-fs/frontend/session.h"
#include "tests/unit/frontend/mounted.h"

namespace streamfs::frontend {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(InHand, TellsTheOldestRequestsAgeInLooks) {
  InHand requests;
  EXPECT_EQ(requests.look(), 0U);
  const unsigned old = requests.taken();
  EXPECT_EQ(requests.look(), 1U);
  const unsigned young = requests.taken();
  EXPECT_EQ(requests.look(), 2U);
  requests.answered(old);
  EXPECT_EQ(requests.look(), 2U);
  requests.answered(young);
  EXPECT_EQ(requests.look(), 0U);
}

TEST(InHand, ARequestStaysOldHoweverManyComeAndGo) {
  InHand requests;
  (void)requests.taken();
  for (unsigned looks = 1; looks < InHand::kLooks; ++looks) {
    requests.answered(requests.taken());
    EXPECT_EQ(requests.look(), looks);
  }
}

TEST(InHand, WhatIsAnsweredByAnotherThreadIsAnswered) {
  InHand requests;
  const unsigned taken = requests.taken();
  std::thread([&] { requests.answered(taken); }).join();
  EXPECT_EQ(requests.look(), 0U);
}

TEST(InHand, WhoWaitsForOthersCountsFromItsTurnOnAndNotMeanwhile) {
  InHand requests;
  const auto look = requests.take(true);
  EXPECT_EQ(requests.look(), 0U);
  {
    const InHand::Turn turn(requests, look);
    EXPECT_EQ(requests.look(), 1U);
    {
      const InHand::Elsewhere waiting;
      EXPECT_EQ(requests.look(), 0U);
    }
    EXPECT_EQ(requests.look(), 1U) << "anew";
  }
  EXPECT_EQ(requests.look(), 0U);
}

TEST(Patience, EndsOnceItHasWaitedForTheLimit) {
  InHand requests;
  std::promise<void> given_up;
  const auto began = steady_clock::now();
  (void)requests.taken();
  const Patience patience(requests, {milliseconds(100), [&] { given_up.set_value(); }});
  given_up.get_future().wait();
  EXPECT_GE(steady_clock::now() - began, milliseconds(100));
}

TEST(Patience, DoesNotEndWhileRequestsAreAnswered) {
  InHand requests;
  std::atomic<bool> given_up{false};
  const Patience patience(requests, {milliseconds(50), [&] { given_up = true; }});
  const auto began = steady_clock::now();
  while (steady_clock::now() - began < milliseconds(300)) {
    const unsigned taken = requests.taken();
    std::this_thread::sleep_for(milliseconds(1));
    requests.answered(taken);
  }
  EXPECT_FALSE(given_up);
}

TEST(PatienceOfAMount, WhoWaitsForWhatNeverAnswersGetsAnErrorAndTheMountStays) {
  if (!can_mount()) GTEST_SKIP() << "mounting needs root and /dev/fuse";
  Session::Options options;
  options.request_timeout_s = 1;
  Mounted mounted(options);
  ASSERT_EQ(mounted.error, "");
  const int file = open(mounted.path("file").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  ASSERT_GE(file, 0);
  std::promise<void> answers;
  mounted.fs.on_fsync = [answer = answers.get_future().share()] { answer.wait(); };
  const auto began = steady_clock::now();
  EXPECT_NE(fsync(file), 0);
  EXPECT_GE(steady_clock::now() - began, milliseconds(1000));
  struct stat found{};
  EXPECT_NE(stat(mounted.path("file").c_str(), &found), 0);
  EXPECT_EQ(errno, ENOTCONN) << "not the directory beneath";
  close(file);
  answers.set_value();
}

}  // namespace
}  // namespace streamfs::frontend
