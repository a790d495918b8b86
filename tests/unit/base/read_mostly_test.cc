#include "base/read_mostly.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <thread>
#include <vector>

namespace streamfs {
namespace {

using Block = std::array<uint64_t, 512>;

TEST(ReadMostly, ReadersFindNothingBeforeTheFirstVersion) {
  ReadMostly<int> value;
  EXPECT_FALSE(value.read());
  value.replace([](int& version) { return version = 7, true; });
  ASSERT_TRUE(value.read());
  EXPECT_EQ(*value.read(), 7);
  value.replace([](int& version) { return version = 8, false; });
  EXPECT_EQ(*value.read(), 7) << "a refused version does not become current";
}

TEST(ReadMostly, AVersionIsFilledAgainOnlyWhenItsReadersAreGone) {
  ReadMostly<int> value;
  for (const int next : {1, 2}) value.replace([&](int& version) { return version = next, true; });
  std::future<void> fourth;  // outlives the reader that it waits for
  {
    const auto reader = value.read();
    value.replace([](int& version) { return version = 3, true; });
    fourth = std::async(std::launch::async,
                        [&] { value.replace([](int& version) { return version = 4, true; }); });
    EXPECT_EQ(fourth.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    EXPECT_EQ(*reader, 2);
    EXPECT_EQ(*value.read(), 3);
  }
  fourth.get();
  EXPECT_EQ(*value.read(), 4);
}

TEST(ReadMostly, AReaderSeesOneVersionWhole) {
  ReadMostly<Block> value;
  value.replace([](Block& version) { return version.fill(0), true; });
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> torn{0}, reads{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      uint64_t last = 0;
      while (!stop) {
        const auto words = value.read();
        const uint64_t first = words->front();
        torn += std::ranges::all_of(*words, [&](uint64_t word) { return word == first; }) ? 0 : 1;
        torn += first < last ? 1 : 0;
        last = first;
        ++reads;
      }
    });
  }
  for (uint64_t next = 1; next <= 2000 || reads < 1000; ++next)
    value.replace([&](Block& version) { return version.fill(next), true; });
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0U);
}

}  // namespace
}  // namespace streamfs
