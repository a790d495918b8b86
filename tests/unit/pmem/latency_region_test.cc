// A modelled medium's times: lower bounds only, because a busy machine may always be later.
#include "pmem/latency_region.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

#include "base/types.h"

namespace streamfs::pmem {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr LatencyModel kSlow{"slow", 100'000, 1'000, 50'000};

template <typename Work>
nanoseconds time(Work&& work) {
  const auto start = steady_clock::now();
  work();
  return steady_clock::now() - start;
}

// The shortest of some tries of what should cost nothing: a busy machine makes single ones long.
template <typename Work>
nanoseconds shortest(Work&& work) {
  nanoseconds best = std::chrono::hours(1);
  for (int i = 0; i < 100; ++i) best = std::min(best, time(work));
  return best;
}

TEST(LatencyRegion, AFenceWaitsForTheWordsThatChanged) {
  const auto region = make_latency_region(4096, MetaClass::kPersistent, kSlow);
  const auto change = [&](uint64_t value) {
    for (const uint64_t offset : {0U, 8U, 64U}) region->store_word(offset, value);
    region->fence(region->flush(0, 128));
  };
  EXPECT_GE(time([&] { change(1); }), nanoseconds(3 * 100'000 + 2 * 1'000));
  EXPECT_LT(shortest([&] { change(1); }), nanoseconds(100'000))
      << "nothing differs from the medium";
}

TEST(LatencyRegion, StoresAndUnwaitedFlushesAreFree) {
  const auto region = make_latency_region(4096, MetaClass::kPersistent, kSlow);
  uint64_t value = 0;
  EXPECT_LT(shortest([&] { region->store_word(0, ++value); }), nanoseconds(50'000));
  EXPECT_LT(shortest([&] {
              region->store_word(0, ++value);
              region->flush(0, 8).leave();
            }),
            nanoseconds(100'000));
}

TEST(LatencyRegion, AReadCostsOnceALine) {
  const auto region = make_latency_region(4096, MetaClass::kPersistent, kSlow);
  EXPECT_GE(time([&] {
              (void)region->load(0);
              (void)region->load(64);
              (void)region->at(0);
            }),
            nanoseconds(3 * 50'000));
  EXPECT_LT(shortest([&] { (void)region->load(8); }), nanoseconds(50'000));
}

TEST(LatencyRegion, PreparingIsFree) {
  const auto region = make_latency_region(4096, MetaClass::kPersistent, kSlow);
  region->charge(false);
  uint64_t value = 0;
  EXPECT_LT(shortest([&] {
              region->store_word(0, ++value);
              region->fence(region->flush(0, 8));
              (void)region->load(64);
            }),
            nanoseconds(50'000));
  region->charge(true);
}

}  // namespace
}  // namespace streamfs::pmem
