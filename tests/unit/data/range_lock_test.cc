#include "fuse-fs/data/range_lock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <future>

namespace streamfs::data {
namespace {

using Access = RangeLock::Access;
using Guard = RangeLock::Guard;

constexpr auto kSoon = std::chrono::milliseconds(50);

// Takes the range on another thread; ready when it was given.
std::future<void> take(RangeLock& lock, uint64_t first, uint64_t last, Access access) {
  return std::async(std::launch::async,
                    [&lock, first, last, access] { const Guard guard(lock, first, last, access); });
}

bool waits(const std::future<void>& taken) {
  return taken.wait_for(kSoon) == std::future_status::timeout;
}

TEST(RangeLock, AWriterKeepsOverlappingOnesOutAndNoOthers) {
  RangeLock lock;
  std::future<void> writer, reader, beside;
  {
    const Guard held(lock, 10, 20, Access::kExclusive);
    writer = take(lock, 20, 30, Access::kExclusive);
    reader = take(lock, 0, 10, Access::kShared);
    beside = take(lock, 31, RangeLock::kToTheEnd, Access::kExclusive);
    EXPECT_TRUE(waits(writer));
    EXPECT_TRUE(waits(reader));
    beside.get();
  }
  writer.get();
  reader.get();
}

TEST(RangeLock, ReadersShare) {
  RangeLock lock;
  const Guard held(lock, 0, 100, Access::kShared);
  take(lock, 50, 60, Access::kShared).get();
}

TEST(RangeLock, AWaitingWriterIsNotOvertakenByReaders) {
  RangeLock lock;
  std::future<void> writer, late;
  {
    const Guard held(lock, 0, 100, Access::kShared);
    writer = take(lock, 0, 100, Access::kExclusive);
    EXPECT_TRUE(waits(writer));
    late = take(lock, 0, 100, Access::kShared);
    EXPECT_TRUE(waits(late));
  }
  writer.get();
  late.get();
}

}  // namespace
}  // namespace streamfs::data
