// Virtual time: shapes whose result is known exactly, and promises that hold for any work.
#include "ssd/latency.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "base/result.h"
#include "ssd/counters.h"
#include "ssd/ftl/page_map.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"
#include "ssd/media/null_media.h"
#include "ssd/victim/greedy.h"

namespace streamfs::ssd {
namespace {

Geometry shaped(NandShape nand, double spare = 0.15) {
  const Result<Geometry> geometry = plan_geometry(
      {.user_bytes = uint64_t{256} << 20, .spare = spare, .streams = 1, .nand = nand});
  return geometry.ok() ? *geometry : Geometry();
}

struct Outcome {
  Counters counters;
  double simulated_s, bound_s;
  double mb_per_s(double seconds) const {
    return static_cast<double>(counters.host_pages + counters.read_pages) * 4096 / 1e6 / seconds;
  }
};

// Sequential, then random overwrites.
Outcome run(const Geometry& geometry, const Timing& timing, uint32_t sequential,
            uint32_t random_writes) {
  Outcome result{};
  LatencyModel latency(timing, geometry, result.counters);
  NullMedia media(&latency);
  Greedy victim(geometry);
  StreamRouter router(geometry);
  LiveCounts live;
  PageMap ftl(geometry, media, victim, router, result.counters, live);
  std::mt19937 random(1);
  for (uint32_t i = 0; i < sequential + random_writes; ++i) {
    const Lpn page =
        i < sequential ? i % geometry.user_pages : static_cast<Lpn>(random() % geometry.user_pages);
    latency.begin_write(1);
    EXPECT_EQ(ftl.write(page, 1, 0, 0, nullptr), 0);
    latency.end_write();
  }
  result.simulated_s = static_cast<double>(result.counters.saturated_ns) / 1e9;
  result.bound_s = static_cast<double>(work_conserving_ns(geometry, result.counters)) / 1e9;
  return result;
}

TEST(Latency, SequentialWritesRunAtTheSpeedOfTheDies) {
  const Geometry geometry = shaped({4, 1, 2, 4, 64, Cell::kTlc});
  const Outcome r = run(geometry, timing_of(Cell::kTlc), 60'000, 0);
  // 8 dies × 48 pages of 4 KiB in 2 ms.
  EXPECT_NEAR(r.mb_per_s(r.simulated_s) / (8 * 48 * 4096 / 2e-3 / 1e6), 1, 0.03);
  EXPECT_NEAR(r.simulated_s / r.bound_s, 1, 0.03);
}

TEST(Latency, ANarrowChannelIsTheBound) {
  const Geometry geometry = shaped({1, 1, 16, 4, 32, Cell::kSlc});
  const Outcome r = run(geometry, timing_of(Cell::kSlc), 60'000, 0);
  EXPECT_NEAR(r.mb_per_s(r.simulated_s) / 1200, 1, 0.05);
  // A second channel doubles it.
  const Geometry wider = shaped({2, 1, 8, 4, 32, Cell::kSlc});
  const Outcome w = run(wider, timing_of(Cell::kSlc), 60'000, 0);
  EXPECT_NEAR(w.mb_per_s(w.simulated_s) / r.mb_per_s(r.simulated_s), 2, 0.1);
}

TEST(Latency, NoWorkIsDoneFasterThanTheBound) {
  for (const Cell cell : {Cell::kSlc, Cell::kMlc, Cell::kTlc}) {
    const Geometry geometry = shaped({2, 1, 2, 2, 8, cell});
    const Outcome r = run(geometry, timing_of(cell), geometry.user_pages, 2 * geometry.user_pages);
    EXPECT_GE(r.simulated_s, r.bound_s);
    EXPECT_LT(r.simulated_s, 2 * r.bound_s);
    EXPECT_GT(r.counters.gc_pages, r.counters.host_pages / 4);
  }
}

TEST(Latency, CollectingGarbageDelaysTheHost) {
  const Geometry geometry = shaped({2, 1, 2, 4, 8, Cell::kTlc}, 0.07);
  const Timing timing = timing_of(Cell::kTlc);
  const Outcome quiet = run(geometry, timing, geometry.user_pages, 0);
  const Outcome busy = run(geometry, timing, geometry.user_pages, geometry.user_pages);
  // Once a block: one write in a thousand.
  EXPECT_GT(latency_quantile_us(busy.counters.write_latency, 0.9999),
            5 * latency_quantile_us(quiet.counters.write_latency, 0.9999));
  EXPECT_LT(busy.mb_per_s(busy.simulated_s), quiet.mb_per_s(quiet.simulated_s) / 2);
}

TEST(Latency, AReadOfAnIdleDeviceTakesTheFlashAndTheChannel) {
  const Geometry geometry = shaped({1, 1, 1, 4, 64, Cell::kTlc});
  Counters counters;
  Timing timing = timing_of(Cell::kTlc);
  timing.load = 2;  // the next request comes after half of a program
  LatencyModel latency(timing, geometry, counters);
  auto read = latency.begin_read(1);
  latency.host_read(read, 5, 1);
  latency.end_read(read);
  const double us = latency_quantile_us(counters.read_latency, 0.5);
  EXPECT_NEAR(us, (80'000 + 13'653 + 10'000) / 1e3, us * 0.05);
  // A read behind a program waits. The program came 10 µs after the first read and waited for it.
  latency.begin_write(48);
  latency.programmed(0, 48, true);
  latency.end_write();
  read = latency.begin_read(1);
  latency.host_read(read, 5, 1);
  latency.end_read(read);
  EXPECT_NEAR(latency_quantile_us(counters.read_latency, 1),
              us + 93.653 + 12 * 13.653 + 2000 - 1010, 40);
}

TEST(Latency, ReadsGoTogetherUpToTheQueueDepth) {
  const Geometry geometry = shaped({1, 1, 16, 4, 16, Cell::kTlc});
  const auto slowest_us = [&](uint32_t depth) {
    Counters counters;
    Timing timing = timing_of(Cell::kTlc);
    timing.queue_depth = depth;
    timing.load = 2;
    LatencyModel latency(timing, geometry, counters);
    for (Ppn page = 0; page < 64; ++page) {  // all on one die
      LatencyModel::Read read = latency.begin_read(1);
      latency.host_read(read, page % 12 * 4, 1);
      latency.end_read(read);
    }
    return latency_quantile_us(counters.read_latency, 1);
  };
  EXPECT_NEAR(slowest_us(1), 80 + 13.653 + 10, 5);
  EXPECT_NEAR(slowest_us(8), 8 * 80, 60);
}

TEST(Latency, PagesOfOneFlashPageAreReadOnce) {
  const Geometry geometry = shaped({1, 1, 1, 4, 64, Cell::kTlc});
  Counters counters;
  LatencyModel latency(timing_of(Cell::kTlc), geometry, counters);
  auto read = latency.begin_read(4);
  latency.host_read(read, 2, 4);  // across two of them
  latency.end_read(read);
  EXPECT_EQ(counters.die_busy_ns, 2 * 80'000u);
}

}  // namespace
}  // namespace streamfs::ssd
