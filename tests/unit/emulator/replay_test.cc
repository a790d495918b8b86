// Replay: sizing, annotation, policies.
#include "emulator/replay/replay.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "emulator/geometry.h"
#include "emulator/replay/workload.h"
#include "emulator/trace/trace.h"
#include "tests/unit/emulator/temporary.h"

namespace streamfs::emulator {
namespace {

PageOp write_of(Lpn page, uint16_t pstream = 0) {
  return {page, pstream, false};
}
PageOp trim_of(Lpn page) {
  return {page, 0, true};
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

double waf(const Workload& workload, const std::string& placement,
           const std::string& edges = "best") {
  ReplayOptions options;
  options.placement = placement;
  options.edges = edges;
  options.warmup = 0.3;
  options.policy.pages_per_block = 64;
  const Result<ReplayResult> result = replay(workload, options);
  EXPECT_TRUE(result.ok()) << result.error().message();
  return result.ok() ? result->waf() : 0;
}

TEST(Workload, KnowsWhenEachPageDies) {
  const Workload w = Workload::from(
      {write_of(0), write_of(1), write_of(0), trim_of(1), trim_of(1), write_of(1), write_of(2)}, 3);
  EXPECT_EQ(w.writes(), 5u);
  EXPECT_EQ(w.death_of(0), 2u);
  EXPECT_EQ(w.death_of(1), 3u);
  EXPECT_EQ(w.death_of(2), Workload::kNever);
  EXPECT_EQ(w.peak_live_pages(), 3u);
  EXPECT_EQ(w.life_of(1), 2u);
  EXPECT_EQ(w.prefilled().writes(), 8u);
  EXPECT_EQ(w.prefilled().death_of(2), 7u);
}

TEST(Workload, WritesWidenAndTrimsShrinkToWholePages) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("t.csv");
  {
    auto writer = TraceWriter::open(path);
    (*writer)->append(0, TraceOp::kWrite, 4000, 200, 0, 0, 0, 2);
    (*writer)->append(0, TraceOp::kRead, 1 << 20, 4096, 0, 0, 0, 0);
    (*writer)->append(0, TraceOp::kTrim, 1, 8190, 0, 0, 0, 0);
    (*writer)->append(0, TraceOp::kTrim, 0, 4096, 0, 0, 0, 0);
  }
  const Result<Workload> w = Workload::load(path, {});
  ASSERT_TRUE(w.ok());
  EXPECT_EQ(w->writes(), 2u);
  EXPECT_EQ(w->ops().size(), 3u);
  EXPECT_EQ(w->ops()[0].pstream, 2);
  EXPECT_EQ(Workload::load(path, {.ignore_trims = true})->ops().size(), 2u);
  EXPECT_EQ(Workload::load(path, {.shift_bytes = 96})->writes(), 1u);
  EXPECT_EQ(Workload::load(path, {.shift_bytes = -4001}).error().code, EINVAL);
  EXPECT_EQ(Workload::load(path, {.device_bytes = 4096}).error().code, EINVAL);
}

TEST(Replay, TheDeviceIsThePeakOfLivePagesAndItsSpareAndTheReserve) {
  const Workload w = logs(4096, 100'000);
  ReplayOptions options;
  options.policy.pages_per_block = 64;
  const Result<ReplayResult> result = replay(w, options);
  ASSERT_TRUE(result.ok());
  const uint64_t blocks = (w.peak_live_pages() * 107 / 100 + 63) / 64 + kReserveBlocks;
  EXPECT_NEAR(static_cast<double>(result->physical_pages), static_cast<double>(blocks * 64), 64);
  options.physical_blocks = 300;
  EXPECT_EQ(replay(w, options)->physical_pages, 300u * 64);
  EXPECT_NEAR(replay(w, options)->effective_spare(),
              300.0 * 64 / static_cast<double>(w.peak_live_pages()) - 1, 1e-9);
}

TEST(Replay, KnowingLifetimesBeatsGuessingThemBeatsNothing) {
  const Workload w = logs(4096, 300'000);
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
  const Workload w = logs(1024, 100'000);
  ReplayOptions options;
  options.placement = "sepgc";
  options.policy.pages_per_block = 64;
  const auto first = to_json(*replay(w, options)), second = to_json(*replay(w, options));
  EXPECT_EQ(first, second);
  EXPECT_EQ(first["host_pages"], 100'000);
  EXPECT_EQ(first["nand_pages"].get<uint64_t>(), 100'000 + first["gc_pages"].get<uint64_t>());
  EXPECT_EQ(first["per_stream"].size(), 2u);
}

TEST(Replay, MistakesAreNamed) {
  const Workload w = logs(1024, 10'000);
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
  EXPECT_EQ(replay(w, options).error().code, ENOSPC);
  EXPECT_EQ(replay(Workload::from({}, 0), options).error().code, EINVAL);
}

}  // namespace
}  // namespace streamfs::emulator
