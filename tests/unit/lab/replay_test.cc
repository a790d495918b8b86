// Replay: sizing, annotation, policies.
#include "lab/replay/replay.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/replay/workload.h"
#include "lab/workload/generator.h"
#include "lab/workload/lifetimes.h"
#include "lab/workload/op_source.h"
#include "ssd/geometry.h"
#include "ssd/latency.h"
#include "ssd/presets.h"

namespace streamfs::lab {
namespace {

PageOp write_of(ssd::Lpn page, uint16_t pstream = 0) {
  return {.page = page, .address = page, .request_first = page, .pstream = pstream};
}
PageOp trim_of(ssd::Lpn page) {
  return {.page = page, .kind = OpKind::kTrim};
}

// Four logs, each overwritten from its front at a speed of its own; tags name the log.
Workload logs(uint32_t pages_each, int writes) {
  std::vector<PageOp> ops;
  uint32_t cursor[4] = {};
  std::mt19937 random(7);
  for (int i = 0; i < writes; ++i) {
    const uint32_t draw = static_cast<uint32_t>(random() % 1000);
    const uint16_t log = draw < 700 ? 0 : draw < 900 ? 1 : draw < 980 ? 2 : 3;
    ops.push_back(write_of(log * pages_each + cursor[log]++ % pages_each, log));
  }
  return Workload::from(std::move(ops), 4 * pages_each);
}

double waf(Workload& workload, const std::string& placement, const std::string& edges = "best") {
  ReplayOptions options;
  options.placement = placement;
  options.edges = edges;
  options.warmup = 0.3;
  options.policy.pages_per_block = 64;
  const Result<ReplayResult> result = replay(workload, options);
  EXPECT_TRUE(result.ok()) << result.error().message();
  return result.ok() ? result->waf() : 0;
}

// Pages that were padded when three streams took turns, a page at a time.
uint64_t pads_with(uint32_t buffers) {
  std::vector<PageOp> ops;
  for (uint16_t i = 0; i < 30; ++i) ops.push_back(write_of(i, i % 3));
  Workload workload = Workload::from(std::move(ops), 4096);
  ssd::GeometryRequest device = *ssd::find_preset("emmc-64g");
  EXPECT_TRUE(ssd::scale_down(device, "1/128").ok());
  ReplayOptions options;
  options.placement = "tags";
  options.policy.streams = 3;
  options.device = *ssd::plan_geometry(device);
  options.write_buffers = buffers;
  const Result<ReplayResult> result = replay(workload, options);
  EXPECT_TRUE(result.ok()) << result.error().message();
  return result.ok() ? result->counters.pad_pages : UINT64_MAX;
}

TEST(Replay, AStreamWithoutAWriteBufferPadsTheWordlineOfAnother) {
  EXPECT_EQ(pads_with(3), 0u);
  EXPECT_EQ(pads_with(0), 0u) << "as many as there are streams";
  EXPECT_EQ(pads_with(2), 28 * 47u) << "a wordline has 48 pages; the first two writes pad none";
}

TEST(Workload, KnowsWhenEachPageDies) {
  Workload w = Workload::from(
      {write_of(0), write_of(1), write_of(0), trim_of(1), trim_of(1), write_of(1), write_of(2)}, 3);
  EXPECT_EQ(w.facts().writes, 5u);
  EXPECT_EQ(w.facts().peak_live_pages, 3u);
  EXPECT_EQ(w.death_of(0), kNever);
  EXPECT_TRUE(w.facts().lifetimes.empty());
  ASSERT_TRUE(w.annotate().ok());
  EXPECT_EQ(w.death_of(0), 2u);
  EXPECT_EQ(w.death_of(1), 3u);
  EXPECT_EQ(w.death_of(2), kNever);
  EXPECT_EQ(w.facts().lifetimes.total(), 5u);
  EXPECT_EQ(w.facts().lifetimes.at(1), 2u);
  EXPECT_EQ(w.facts().lifetimes.at(2), kNever);
}

TEST(Workload, APrefillWritesEveryPageFirst) {
  Workload w = Workload::from({write_of(2), write_of(0), trim_of(2)}, 3);
  EXPECT_EQ(w.facts().peak_live_pages, 2u);
  w.set_prefill({.share = 1});
  EXPECT_EQ(w.facts().writes, 5u);
  EXPECT_EQ(w.facts().peak_live_pages, 3u);
  EXPECT_EQ(w.prefill_writes(), 3u);
  ASSERT_TRUE(w.annotate().ok());
  EXPECT_EQ(w.death_of(2), 3u);
  EXPECT_EQ(w.death_of(3), 5u);
  w.set_prefill({});
  EXPECT_EQ(w.facts().writes, 2u);
  ASSERT_TRUE(w.annotate().ok());
  EXPECT_EQ(w.death_of(0), 2u);
}

TEST(Replay, TheDeviceIsThePeakOfLivePagesAndItsSpareAndTheReserve) {
  Workload w = logs(4096, 100'000);
  ReplayOptions options;
  options.policy.pages_per_block = 64;
  const Result<ReplayResult> result = replay(w, options);
  ASSERT_TRUE(result.ok());
  const uint64_t blocks = (w.facts().peak_live_pages * 107 / 100 + 63) / 64 + ssd::kReserveBlocks;
  EXPECT_NEAR(static_cast<double>(result->physical_pages), static_cast<double>(blocks * 64), 64);
  options.physical_blocks = 300;
  EXPECT_EQ(replay(w, options)->physical_pages, 300u * 64);
  EXPECT_NEAR(replay(w, options)->effective_spare(),
              300.0 * 64 / static_cast<double>(w.facts().peak_live_pages) - 1, 1e-9);
}

TEST(Replay, KnowingLifetimesBeatsGuessingThemBeatsNothing) {
  Workload w = logs(4096, 300'000);
  const double none = waf(w, "nosep");
  EXPECT_GT(none, 1.2);
  EXPECT_LT(waf(w, "sepgc"), none);
  EXPECT_LT(waf(w, "sepbit"), none);
  EXPECT_LT(waf(w, "tags"), 1.02);
  EXPECT_LT(waf(w, "oracle"), waf(w, "sepbit"));
  EXPECT_LT(waf(w, "oracle-host"), waf(w, "sepgc"));
  for (const char* edges : {"log2", "quantile", "threshold"})
    EXPECT_LE(waf(w, "oracle"), waf(w, "oracle", edges));
}

TEST(Replay, IsDeterministicAndCountsEveryPage) {
  Workload w = logs(1024, 100'000);
  ReplayOptions options;
  options.placement = "sepgc";
  options.policy.pages_per_block = 64;
  const auto first = to_json(*replay(w, options)), second = to_json(*replay(w, options));
  EXPECT_EQ(first, second);
  EXPECT_EQ(first["host_pages"], 100'000);
  EXPECT_EQ(first["nand_pages"].get<uint64_t>(), 100'000 + first["gc_pages"].get<uint64_t>());
  EXPECT_EQ(first["per_stream"].size(), 2u);
}

ReplayOptions timed(double load) {
  ReplayOptions options;
  options.policy.pages_per_block = 192;
  options.cell = ssd::Cell::kTlc;
  options.load = load;
  return options;
}

// Writes of four pages; after each a read of two pages of it.
Workload writes_and_reads(uint32_t pages, int requests) {
  std::vector<PageOp> ops;
  std::mt19937 random(3);
  for (int i = 0; i < requests; ++i) {
    const auto first = static_cast<ssd::Lpn>(random() % (pages / 4) * 4);
    for (ssd::Lpn page = first; page < first + 4; ++page)
      ops.push_back({.page = page, .address = page, .request_first = first, .request_pages = 4});
    for (ssd::Lpn page = first + 1; page < first + 3; ++page)
      ops.push_back({.page = page,
                     .address = page,
                     .request_first = first + 1,
                     .request_pages = 2,
                     .kind = OpKind::kRead});
  }
  return Workload::from(std::move(ops), pages);
}

uint64_t total(const ssd::Histogram& histogram) {
  return std::accumulate(histogram.begin(), histogram.end(), uint64_t{0});
}

TEST(Replay, VirtualTimeHasOneLatencyForEachRequest) {
  Workload w = writes_and_reads(4096, 5000);
  const Result<ReplayResult> result = replay(w, timed(0.2));
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_TRUE(result->time);
  EXPECT_EQ(total(result->counters.write_latency), 5000u);
  EXPECT_EQ(total(result->counters.read_latency), 5000u);
  EXPECT_EQ(result->counters.read_pages, 10'000u);
  EXPECT_GT(result->time->simulated_mb_per_s, 0);
  EXPECT_LE(result->time->simulated_mb_per_s, result->time->bound_mb_per_s);
  EXPECT_GE(result->time->read.p50_us, 80 + 13 + 10 - 10);
  const auto json = to_json(*result);
  EXPECT_EQ(json["read_latency_us"]["p99"], result->time->read.p99_us);
}

TEST(Replay, VirtualTimeChangesNoCountAndIsThereOnlyIfAskedFor) {
  Workload w = writes_and_reads(4096, 5000);
  ReplayOptions options = timed(0.2);
  const auto with = replay(w, options);
  options.cell.reset();
  const auto without = replay(w, options);
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_FALSE(without->time);
  EXPECT_FALSE(to_json(*without).contains("latency_us"));
  EXPECT_EQ(with->counters.gc_pages, without->counters.gc_pages);
  EXPECT_EQ(with->counters.erases, without->counters.erases);
  EXPECT_EQ(without->counters.die_busy_ns, 0u);
}

TEST(Replay, WarmUpIsLeftOutOfTheTimes) {
  Workload w = writes_and_reads(4096, 5000);
  ReplayOptions options = timed(0.2);
  options.warmup = 0.5;
  EXPECT_NEAR(static_cast<double>(total(replay(w, options)->counters.write_latency)), 2500, 2);
}

TEST(Replay, CopiesMakeTheHostWait) {
  GeneratorOptions made{.pages = 1 << 16, .writes = 4 << 16, .read_share = 0.7};
  Workload w = *Workload::survey(*make_generator("fio4", made));
  ReplayOptions options = timed(0.1);
  options.prefill = {.share = 1};
  options.warmup = 0.4;
  options.policy.streams = 4;
  options.placement = "sepgc";
  const ssd::VirtualTime off = *replay(w, options)->time;
  options.placement = "tags";
  const ssd::VirtualTime on = *replay(w, options)->time;
  EXPECT_GT(off.read.p99_us, 2 * on.read.p99_us);
  EXPECT_GT(on.simulated_mb_per_s, 1.1 * off.simulated_mb_per_s);
}

TEST(Replay, ABlockThatIsNotWholeWordlinesIsRefused) {
  Workload w = logs(1024, 10'000);
  ReplayOptions options = timed(0.5);
  options.policy.pages_per_block = 256;
  const Error error = replay(w, options).error();
  EXPECT_EQ(error.code, EINVAL);
  EXPECT_NE(error.context.find("256 pages per block: must be a multiple of 48"), std::string::npos);
}

TEST(Replay, MistakesAreNamed) {
  Workload w = logs(1024, 10'000);
  ReplayOptions options;
  options.placement = "magic";
  const Error unknown = replay(w, options).error();
  EXPECT_EQ(unknown.code, EINVAL);
  EXPECT_NE(unknown.context.find("sepbit"), std::string::npos);
  options.placement = "nosep";
  options.victim = "magic";
  EXPECT_NE(replay(w, options).error().context.find("greedy"), std::string::npos);
  options.victim = "greedy";
  options.physical_blocks = 8;
  const Error full = replay(w, options).error();
  EXPECT_EQ(full.code, ENOSPC);
  EXPECT_NE(full.context.find("on 8 blocks of 256 pages"), std::string::npos) << full.context;
  Workload none = Workload::from({}, 0);
  EXPECT_EQ(replay(none, options).error().code, EINVAL);
}

}  // namespace
}  // namespace streamfs::lab
