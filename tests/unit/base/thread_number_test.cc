#include "base/thread_number.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <set>
#include <thread>
#include <vector>

namespace streamfs {
namespace {

// A thread that has its number until it is let go.
class Held {
 public:
  Held() : thread_([this] { number_.set_value(thread_number()), end_.get_future().wait(); }) {}
  ~Held() {
    end_.set_value();
    thread_.join();
  }
  size_t number() { return number_.get_future().get(); }

 private:
  std::promise<size_t> number_;
  std::promise<void> end_;
  std::thread thread_;
};

std::set<size_t> numbers_of(size_t threads) {
  std::vector<Held> held(threads);
  std::set<size_t> numbers;
  for (Held& each : held) numbers.insert(each.number());
  return numbers;
}

TEST(ThreadNumber, StaysTheSame) {
  EXPECT_EQ(thread_number(), thread_number());
}

TEST(ThreadNumber, NoTwoThreadsHaveTheSame) {
  EXPECT_EQ(numbers_of(20).size(), 20U);
}

TEST(ThreadNumber, ThoseOfThreadsThatEndedComeAgain) {
  const std::set<size_t> before = numbers_of(4);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(numbers_of(4), before);
}

}  // namespace
}  // namespace streamfs
