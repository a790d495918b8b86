// The cost of placing a page by a published model, of judging a page's write, of learning from it,
// and of telling the daemon of it.
//   learning_bench --benchmark_filter=Judge
#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/wire/model_table.h"
#include "base/wire/telemetry.h"
#include "fuse-fs/placement/telemetry.h"
#include "learning/classes.h"
#include "learning/landmarks.h"
#include "learning/lifetime_model.h"
#include "learning/logistic.h"
#include "learning/placement_model.h"
#include "learning/request.h"
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
// Random tables, weights and chunk classes; two classes of lifetime.
std::unique_ptr<wire::ModelBuffer> random_model(wire::ModelServes serves) {
  auto model = std::make_unique<wire::ModelBuffer>();
  std::mt19937_64 random(2);
  model->serves = serves;
  model->pstream_count = 8;
  model->classes = 2;
  model->pstreams[1] = 1;
  model->live_pages = kLive;
  model->edges[0] = Landmarks(kLive).longest() / 2;
  model->table_rows = 64;
  for (uint32_t v = 0; v < 64; ++v) model->row_of[v] = static_cast<uint16_t>(v);
  for (uint32_t i = 0; i < 64 * wire::kShapes; ++i) {
    model->entries[i] = static_cast<uint8_t>(random() % 8);
    model->expected[i] = static_cast<uint8_t>(random() % 40);
  }
  for (auto& row : model->weights)
    for (int8_t& weight : row) weight = static_cast<int8_t>(random() % 64 - 32);
  for (uint8_t& each : model->chunks) each = static_cast<uint8_t>(random() % wire::kChunkClasses);
  model->checksum = crc32c(wire::summed(*model));
  return model;
}

// Pages at random places in requests of so many pages.
void place(benchmark::State& state, wire::ModelServes serves) {
  PlacementModel model;
  SFS_ASSERT(model.deserialize(*random_model(serves), 8).ok());
  const auto pages = static_cast<uint32_t>(state.range(0));
  std::mt19937_64 random(3);
  std::vector<Request> requests(4096);
  for (Request& each : requests) {
    each = {.page = random() % kLive,
            .pages = pages,
            .whole_pages = pages,
            .vstream = static_cast<uint16_t>(random() % 64),
            .age = static_cast<uint8_t>(random() % wire::kAgeClasses),
            .file_place = static_cast<uint8_t>(random() % 40)};
  }
  size_t next = 0;
  for (auto _ : state) {
    PlacementModel::Cursor cursor;
    const Request& request = requests[next++ % requests.size()];
    for (uint32_t i = 0; i < pages; ++i) benchmark::DoNotOptimize(model.place(request, i, cursor));
  }
  state.SetItemsProcessed(state.iterations() * pages);
}
void PlaceByTable(benchmark::State& state) {
  place(state, wire::ModelServes::kTable);
}
void PlaceByLogistic(benchmark::State& state) {
  place(state, wire::ModelServes::kLogistic);
}
BENCHMARK(PlaceByTable)->Arg(1)->Arg(32);
BENCHMARK(PlaceByLogistic)->Arg(1)->Arg(32);

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
