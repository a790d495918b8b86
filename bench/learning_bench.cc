// The cost of judging a page's write, of learning from it, and of telling the daemon of it.
//   learning_bench --benchmark_filter=Judge
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/wire/telemetry.h"
#include "fuse-fs/placement/telemetry.h"
#include "learning/classes.h"
#include "learning/landmarks.h"
#include "learning/lifetime_model.h"
#include "learning/logistic.h"
#include "learning/tokens.h"
#include "learning/write_view.h"

namespace streamfs::learning {
namespace {

constexpr uint64_t kLive = 1 << 18;

std::vector<WriteView> views() {
  std::mt19937_64 random(1);
  std::vector<WriteView> out(4096);
  for (WriteView& view : out) {
    view.page = random() % kLive;
    view.vstream = static_cast<uint16_t>(random() % 64);
    view.length = static_cast<uint8_t>(random() % 12);
    view.tail = static_cast<uint8_t>(random() % 12);
    view.age = view.last = static_cast<uint8_t>(random() % 40);
    view.mean_1m = static_cast<uint8_t>(random() % 40);
    view.alive = random() % 2 == 0;
  }
  return out;
}

// A page's lifetime and class, from what is known of it: what placement would do on a write.
void JudgePage(benchmark::State& state) {
  const Logistic<kHistoryTokens> logistic;
  const Landmarks landmarks(kLive);
  Classes classes(8, landmarks);
  const std::vector<WriteView> writes = views();
  size_t at = 0;
  for (auto _ : state) {
    const float lifetime =
        landmarks.lifetime(logistic.score(tokens_of(writes[at++ % writes.size()])));
    benchmark::DoNotOptimize(classes.place(lifetime, false));
  }
}
BENCHMARK(JudgePage);

// The same, found out and learned from: what the daemon does with a page of a record.
void JudgeAndLearnPage(benchmark::State& state) {
  const auto pages = static_cast<uint32_t>(state.range(0));
  LifetimeModel model(kLive, kLive);
  std::mt19937_64 random(2);
  for (auto _ : state) {
    const uint64_t page = random() % (kLive / pages) * pages;
    model.write({.page = page, .pages = pages, .whole_pages = pages},
                [](float lifetime, bool) { benchmark::DoNotOptimize(lifetime); });
  }
  state.SetItemsProcessed(state.iterations() * pages);
}
BENCHMARK(JudgeAndLearnPage)->Arg(1)->Arg(32);

void TelemetryRecord(benchmark::State& state) {
  auto made = placement::Telemetry::make(1 << 16, kLive, {});
  if (!made) std::abort();
  const std::unique_ptr<placement::Telemetry> telemetry = std::move(made).value();
  wire::TelemetryRecord record{};
  record.pages = record.request_pages = 1;
  for (auto _ : state) {
    ++record.clock_pages;
    telemetry->record(record);
  }
}
BENCHMARK(TelemetryRecord);

}  // namespace
}  // namespace streamfs::learning
