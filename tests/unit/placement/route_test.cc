#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "base/wire/model_table.h"
#include "base/wire/telemetry.h"
#include "learning/landmarks.h"
#include "learning/logistic.h"
#include "learning/path_model.h"
#include "learning/request.h"
#include "learning/tokens.h"
#include "tests/unit/placement/memory_store.h"
#include "tests/unit/placement/published_model.h"

namespace streamfs::placement {
namespace {

class Route : public testing::Test {
 protected:
  static constexpr uint64_t kCapacity = 1 << 16;
  Route() { open(Mode::kAuto); }
  void open(Mode mode) {
    Placement::Options options;
    options.mode = mode;
    options.pstream_count = 4;
    options.capacity_blocks = kCapacity;
    options.uuid = {1, 2, 3};
    options.telemetry_capacity = 64;
    options.remap_pages = 4096;
    placement_ = std::move(Placement::open(store_, clock_, options)).value();
    memory_ = placement_->shared_memory();
    model_ = std::make_unique<PublishedModel>(memory_.model_fd, memory_.model_bytes);
    telemetry_ = map(memory_.telemetry_fd, memory_.telemetry_bytes);
  }
  static std::byte* map(int fd, uint64_t bytes) {
    return static_cast<std::byte*>(
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  }
  wire::ModelHeader& header() { return model_->header(); }
  wire::ModelBuffer& buffer(uint64_t generation) { return model_->buffer(generation); }
  // Publishes as the daemon would: last pages of a request on 3, the rest on 1.
  void publish(uint64_t generation) {
    publish(generation, [](uint32_t shape) { return shape == 3 || shape == 0 ? 3 : 1; });
  }
  template <typename StreamOf>
  void publish(uint64_t generation, const StreamOf& stream_of) {
    model_->publish(generation, stream_of);
  }
  void write(uint64_t first, uint64_t pages) {
    for (uint64_t at = first; at < first + pages; at += 8) {
      placement_->wrote({kDefaultVStream, 8, 0, 8, BlockNo{at}}, kDefaultPStream, 0);
    }
  }
  std::vector<RoutedRun> route_over(uint64_t first, uint32_t pages) {
    std::vector<RoutedRun> runs;
    Placement::Cursor cursor;
    placement_->route_run({kDefaultVStream, pages, 0, pages, BlockNo{first}}, true, cursor, runs);
    return runs;
  }
  // Makes the first model a logistic one, by which pages like `longer` outlive those like `other`:
  // pStreams 3 and 2.
  void serve_logistic(const learning::Request& longer, const learning::Request& other) {
    const auto up = tokens_of(path_view(longer, 0)), down = tokens_of(path_view(other, 0));
    wire::ModelBuffer& out = buffer(1);
    out.serves = wire::ModelServes::kLogistic;
    out.classes = 2;
    out.live_pages = kCapacity;
    const learning::Landmarks landmarks(kCapacity);
    std::array<float, learning::kLandmarks> even{};
    even.fill(0.5F);
    out.edges[0] = landmarks.lifetime_of(even) + 1;
    out.pstreams[0] = 2;
    out.pstreams[1] = 3;
    for (uint32_t i = 0; i < learning::kPathTokens; ++i) {
      if (up[i] == down[i]) continue;
      auto& row = out.weights[learning::row_of<learning::kPathTokens>(i, up[i])];
      std::ranges::fill(row, int8_t{127});
    }
    model_->say(1);
  }
  void rewrite(VStreamId v, uint64_t first, uint64_t units, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      const BlockNo block{first + static_cast<uint64_t>(i) % units * 16};
      const bool again = i >= static_cast<int>(units);
      placement_->wrote({v, 16, 0, 16, block}, kDefaultPStream,
                        again ? wire::kAgeOld : wire::kAgeNew);
    }
  }

  MemoryStore store_;
  ManualClock clock_;
  std::unique_ptr<Placement> placement_;
  Placement::SharedMemory memory_{};
  std::unique_ptr<PublishedModel> model_;
  std::byte* telemetry_ = nullptr;
};

TEST_F(Route, TheShapeOfTheRequestDecides) {
  publish(1);
  ASSERT_TRUE(placement_->tick().has_value());
  std::vector<RoutedRun> runs;
  Placement::Cursor cursor;
  placement_->route_run({kDefaultVStream, 10, 0, 10, BlockNo{0}}, false, cursor, runs);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].pages, 9U);
  EXPECT_EQ(runs[0].stream.value, 1);
  EXPECT_EQ(runs[1].offset_pages, 9U);
  EXPECT_EQ(runs[1].stream.value, 3);
  EXPECT_EQ(placement_->route(kDefaultVStream, 1, 0, wire::kAgeNew).value, 3);
}

TEST_F(Route, RunsCoverExactlyWhatWasAskedForAnySplit) {
  publish(1);
  placement_->tick();
  for (uint32_t n = 1; n < 12; ++n) {
    for (uint32_t from = 0; from < n; ++from) {
      for (uint32_t to = from + 1; to <= n; ++to) {
        std::vector<RoutedRun> runs;
        Placement::Cursor cursor;
        placement_->route_run({kDefaultVStream, n, from, to - from, BlockNo{0}}, false, cursor,
                              runs);
        uint64_t at = from;
        for (const RoutedRun& run : runs) {
          EXPECT_EQ(run.offset_pages, at);
          for (uint64_t p = 0; p < run.pages; ++p, ++at) {
            EXPECT_EQ(
                placement_->route(kDefaultVStream, n, static_cast<uint32_t>(at), wire::kAgeNew),
                run.stream);
          }
        }
        EXPECT_EQ(at, to);
      }
    }
  }
}

TEST_F(Route, TheAgeOfWhatIsOverwrittenDecides) {
  constexpr uint32_t kRecent = 1;  // age class
  publish(1, [](uint32_t shape) { return shape / wire::kEndClasses == kRecent ? 2 : 1; });
  ASSERT_TRUE(placement_->tick().has_value());
  write(0, 32);
  write(kCapacity / 2, kCapacity / 8);  // pages pass
  write(16, 8);
  const std::vector<RoutedRun> runs = route_over(0, 32);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].stream.value, 1);
  EXPECT_EQ(runs[0].age, 3) << "an eighth of the device ago";
  EXPECT_EQ(runs[1].offset_pages, 16U);
  EXPECT_EQ(runs[1].pages, 8U);
  EXPECT_EQ(runs[1].stream.value, 2);
  EXPECT_EQ(runs[1].age, 1);
  EXPECT_EQ(runs[2].age, 3);
  EXPECT_EQ(route_over(kCapacity / 4, 1)[0].age, wire::kAgeOld) << "nobody has seen it written";
}

TEST_F(Route, AVStreamYoungerThanTheModelIsNotTheModels) {
  publish(1);
  buffer(1).clock_pages = 0;
  placement_->tick();
  const VStreamId v = *placement_->by_name("new", Source::kHint);
  EXPECT_EQ(placement_->route(v, 1, 0, wire::kAgeNew), placement_->info(v)->pstream);
  EXPECT_NE(placement_->route(v, 5, 0, wire::kAgeNew), kDefaultPStream) << "a pStream of its own";
}

TEST_F(Route, WhatATableNamesNoMoreIsReleasedOnce) {
  publish(1);
  placement_->tick();
  EXPECT_TRUE(placement_->take_released().empty());
  publish(2, [](uint32_t) { return 2; });
  placement_->tick();
  EXPECT_EQ(placement_->take_released(), (std::vector{PStreamId{1}, PStreamId{3}}));
  EXPECT_TRUE(placement_->take_released().empty());
  publish(3);
  publish(4, [](uint32_t) { return 3; });
  placement_->tick();
  EXPECT_EQ(placement_->take_released(), std::vector{PStreamId{2}}) << "3 is in use again";
}

TEST_F(Route, AModelIsRefusedForEveryFault) {
  uint64_t generation = 1;
  // Returns the reason for which the spoiled model is refused; empty: it is adopted.
  const auto refusal_after = [&](auto spoil) -> std::string {
    publish(++generation);
    spoil(buffer(generation), header());
    const uint64_t before = placement_->model_status().refused;
    placement_->tick();
    const ModelStatus status = placement_->model_status();
    header().magic = wire::kModelMagic;
    header().version = wire::kModelVersion;
    header().buffer_size = sizeof(wire::ModelBuffer);
    header().uuid[0] = 1;
    return status.refused == before + 1 ? status.refusal : "";
  };
  using B = wire::ModelBuffer;
  using H = wire::ModelHeader;
  const std::string sum = "wrong checksum", count = "made for another number of pStreams";
  EXPECT_EQ(refusal_after([](B& b, H&) { b.entries[77] ^= 1; }), sum);
  EXPECT_EQ(refusal_after([](B& b, H&) { b.weights[wire::kModelRows - 1][15] ^= 1; }), sum);
  EXPECT_EQ(refusal_after([](B& b, H&) { b.generation += 2; }), "buffer of another generation");
  EXPECT_EQ(refusal_after([](B& b, H&) { b.pstream_count = 5; }), count);
  EXPECT_EQ(refusal_after([](B& b, H&) { b.pstream_count = 0; }), count);
  EXPECT_EQ(refusal_after([](B&, H& h) { h.magic ^= 1; }), "no model table there");
  EXPECT_EQ(refusal_after([](B&, H& h) { ++h.version; }), "another version");
  EXPECT_EQ(refusal_after([](B&, H& h) { --h.buffer_size; }), "another size");
  EXPECT_EQ(refusal_after([](B&, H& h) { h.uuid[0] ^= 1; }), "made for another filesystem");
  EXPECT_EQ(refusal_after([](B& b, H&) { b.kind[0] = '\n'; }), "its kind is no name");
  const auto refusal_with = [&](auto spoil) {
    return refusal_after([&](B& b, H&) {
      spoil(b);
      b.checksum = crc32c(wire::summed(b));
    });
  };
  const std::string stream = "names a pStream that is not there",
                    classes = "a number of classes that cannot be",
                    live = "live pages that cannot be", order = "its classes are out of order",
                    row = "its table has a row that is not there",
                    chunk = "a chunk class that is not there";
  EXPECT_EQ(refusal_with([](B& b) { b.entries[0] = 4; }), stream);
  EXPECT_EQ(refusal_with([](B& b) { b.pstreams[1] = 4; }), stream);
  EXPECT_EQ(refusal_with([](B& b) { b.serves = static_cast<wire::ModelServes>(2); }),
            "an unknown part serves");
  EXPECT_EQ(refusal_with([](B& b) { b.table_rows = 0; }), row);
  EXPECT_EQ(refusal_with([](B& b) { b.table_rows = wire::kModelTableRows + 1; }), row);
  EXPECT_EQ(refusal_with([](B& b) { b.row_of[wire::kModelVStreams - 1] = 1; }), row);
  EXPECT_EQ(refusal_with([](B& b) { b.chunks[wire::kModelChunks - 1] = wire::kChunkClasses; }),
            chunk);
  EXPECT_EQ(refusal_with([](B& b) { b.classes = 0; }), classes);
  EXPECT_EQ(refusal_with([](B& b) { b.classes = wire::kModelClasses + 1; }), classes);
  EXPECT_EQ(refusal_with([](B& b) { b.live_pages = 0; }), live);
  EXPECT_EQ(refusal_with([](B& b) { b.live_pages = UINT64_MAX; }), live);
  EXPECT_EQ(refusal_with([](B& b) { b.classes = 3, b.edges[0] = 2, b.edges[1] = 1; }), order);
  EXPECT_EQ(refusal_with([](B& b) { b.classes = 2, b.edges[0] = std::nanf(""); }), order);
  EXPECT_FALSE(placement_->model_status().adopted);
  EXPECT_EQ(refusal_after([](B&, H&) {}), "");
  EXPECT_TRUE(placement_->model_status().adopted);
}

TEST_F(Route, TheClassOfTheChunkDecides) {
  constexpr uint32_t kHot = 3;  // class of the second chunk
  constexpr uint32_t kShapesOfChunk = wire::kShapes / wire::kChunkClasses;
  publish(1, [](uint32_t shape) { return shape / kShapesOfChunk == kHot ? 2 : 1; });
  buffer(1).chunks[1] = kHot;
  model_->say(1);
  ASSERT_TRUE(placement_->tick().has_value());
  const auto runs = route_over(wire::kChunkPages - 2, wire::kChunkPages + 4);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].stream.value, 1);
  EXPECT_EQ(runs[1].offset_pages, 2U);
  EXPECT_EQ(runs[1].pages, wire::kChunkPages);
  EXPECT_EQ(runs[1].stream.value, 2);
  EXPECT_EQ(runs[2].stream.value, 1);
  EXPECT_EQ(placement_->plain_route(kDefaultVStream).value, 1) << "without a place";
  const BlockNo hot{wire::kChunkPages};
  EXPECT_EQ(placement_->epoch_route(kDefaultVStream, hot, PStreamId{3}).value, 2);
}

// A model whose pages in the first MiB live longer than those elsewhere: pStreams 3 and 2.
TEST_F(Route, ALogisticModelTellsPlacesApart) {
  constexpr uint64_t kHere = 5, kThere = 5000;
  learning::Request here{.page = kHere, .pages = 1, .whole_pages = 1}, there = here;
  there.page = kThere;
  publish(1);
  serve_logistic(here, there);
  ASSERT_TRUE(placement_->tick().has_value());
  ASSERT_TRUE(placement_->model_status().adopted) << placement_->model_status().refusal;
  const auto stream_at = [&](uint64_t page) { return route_over(page, 1).at(0).stream.value; };
  EXPECT_EQ(stream_at(kHere), 3);
  EXPECT_EQ(stream_at(kThere), 2);
  EXPECT_EQ(placement_->plain_route(kDefaultVStream).value, 1) << "the table has no places";
  EXPECT_EQ(placement_->epoch_route(kDefaultVStream, BlockNo{0}, PStreamId{2}).value, 2);
  publish(2);
  placement_->tick();
  EXPECT_EQ(placement_->epoch_route(kDefaultVStream, BlockNo{0}, PStreamId{2}).value, 1);
  EXPECT_EQ(placement_->take_released(), std::vector{PStreamId{2}});
}

TEST_F(Route, ALogisticModelTellsPlacesInTheFileApart) {
  learning::Request late{.page = 5, .pages = 1, .whole_pages = 1, .file_place = 30}, early = late;
  early.file_place = 1;
  publish(1);
  serve_logistic(late, early);
  ASSERT_TRUE(placement_->tick().has_value());
  for (const uint8_t file_place : {uint8_t{30}, uint8_t{1}}) {
    std::vector<RoutedRun> runs;
    Placement::Cursor cursor;
    placement_->route_run({kDefaultVStream, 1, 0, 1, BlockNo{5}, file_place}, false, cursor, runs);
    EXPECT_EQ(runs.at(0).stream.value, file_place == 30 ? 3 : 2);
  }
}

TEST_F(Route, TheModelIsNamedThatIsInUseAndNotTheRefusedOne) {
  publish(1);
  EXPECT_EQ(placement_->tick(), "model 1 (life-table) adopted");
  publish(2);
  std::strcpy(buffer(2).kind, "nosep");
  buffer(2).entries[77] ^= 1;
  EXPECT_EQ(placement_->tick(), "model 2 refused: wrong checksum");
  ModelStatus status = placement_->model_status();
  EXPECT_TRUE(status.adopted);
  EXPECT_EQ(status.generation, 1U);
  EXPECT_EQ(status.kind, "life-table");
  EXPECT_EQ(status.looked_at, 2U);
  EXPECT_EQ(status.adoptions, 1U);
  EXPECT_EQ(status.refusal, "wrong checksum");
  publish(3);
  std::memset(buffer(3).kind, 'k', wire::kModelKindBytes);
  placement_->tick();
  status = placement_->model_status();
  EXPECT_EQ(status.kind, std::string(wire::kModelKindBytes, 'k')) << "no NUL ends it";
  EXPECT_EQ(status.generation, 3U);
}

// The daemon may overwrite a buffer while the filesystem copies it.
TEST_F(Route, AModelThatIsOverwrittenWhileItIsCopiedIsNotRefused) {
  const std::jthread daemon([&](const std::stop_token& stop) {
    for (uint64_t generation = 1; !stop.stop_requested(); ++generation) {
      publish(generation, [&](uint32_t) { return generation % 4; });
    }
  });
  while (header().active.load() < 50) placement_->tick();
  EXPECT_EQ(placement_->model_status().refused, 0U) << placement_->model_status().refusal;
}

TEST_F(Route, RandomSharedMemoryNeverGivesAPStreamThatIsNotThere) {
  std::mt19937_64 random(3);
  publish(1);
  placement_->tick();
  for (int round = 0; round < 20; ++round) {
    for (uint64_t at = 0; at < memory_.model_bytes; at += 8) {
      const uint64_t noise = random();
      std::memcpy(model_->bytes() + at, &noise, 8);
    }
    placement_->tick();
    EXPECT_LT(placement_->route(VStreamId{static_cast<uint16_t>(random())}, 7, 6, true).value, 4);
  }
  EXPECT_EQ(placement_->route(kDefaultVStream, 1, 0, wire::kAgeNew).value, 3)
      << "the last good one serves";
}

TEST_F(Route, TheSharedMemoryCannotShrinkUnderUs) {
  EXPECT_NE(::ftruncate(memory_.model_fd, 0), 0);
  EXPECT_NE(::ftruncate(memory_.telemetry_fd, 0), 0);
}

TEST_F(Route, MeasuredLifetimesSeparateWithoutAnyModel) {
  const VStreamId hot = placement_->choose({"log", "a.wal", "d", {}}).vstream;
  const VStreamId cold = placement_->choose({"db", "a.dat", "d", {}}).vstream;
  EXPECT_EQ(placement_->route(hot, 9, 0, wire::kAgeNew), kDefaultPStream) << "nothing is known yet";
  rewrite(hot, 0, 4, 2000);
  rewrite(cold, 8192, 512, 1600);
  clock_.ms += 1000;
  placement_->tick();
  EXPECT_NE(placement_->route(hot, 9, 0, wire::kAgeNew),
            placement_->route(cold, 9, 0, wire::kAgeNew));
  EXPECT_LT(placement_->info(hot)->lifetime_bytes, placement_->info(cold)->lifetime_bytes);
  EXPECT_EQ(placement_->info(hot)->written_bytes, 2000U * 16 * kBlockSize);
}

TEST_F(Route, WhatNeverDiesIsNotLeftWithWhatDiesAtOnce) {
  // Hints take pStreams of their own before anything is measured; the hot one's may not stay
  // shared.
  std::vector<VStreamId> cold;
  for (const char* name : {"cold-a", "cold-b", "cold-c"}) {
    cold.push_back(*placement_->by_name(name, Source::kHint));
    rewrite(cold.back(), 4096 * cold.size(), 64, 64);
  }
  const VStreamId hot = *placement_->by_name("hot", Source::kHint);
  for (int round = 0; round < 6; ++round) {
    rewrite(hot, 0, 4, 1000);
    clock_.ms += 1000;
    placement_->tick();
  }
  for (const VStreamId v : cold) {
    EXPECT_NE(placement_->route(v, 9, 0, wire::kAgeNew),
              placement_->route(hot, 9, 0, wire::kAgeNew));
  }
}

TEST_F(Route, AnUnmeasuredHintKeepsItsPStreamToItself) {
  const VStreamId hot = placement_->choose({"log", "a.wal", "d", {}}).vstream;
  const VStreamId said = *placement_->by_name("said", Source::kHint);
  rewrite(hot, 0, 4, 2000);
  placement_->tick();
  EXPECT_NE(placement_->route(said, 9, 0, wire::kAgeNew),
            placement_->route(hot, 9, 0, wire::kAgeNew));
  EXPECT_NE(placement_->route(hot, 9, 0, wire::kAgeNew), kDefaultPStream);
}

TEST_F(Route, OffIsOff) {
  open(Mode::kOff);
  publish(1);
  placement_->tick();
  EXPECT_EQ(placement_->route(*placement_->by_number(5), 1, 0, wire::kAgeNew), kDefaultPStream);
}

TEST_F(Route, TelemetryTellsEachRunAndOverwritesWhenNobodyReads) {
  for (uint64_t i = 0; i < 100; ++i) {
    placement_->wrote({VStreamId{3}, 4, 1, 1, BlockNo{i}, 9}, PStreamId{2}, 2);
  }
  const auto* header = reinterpret_cast<const wire::TelemetryHeader*>(telemetry_);
  EXPECT_EQ(header->magic, wire::kTelemetryMagic);
  EXPECT_EQ(header->capacity, 64U);
  EXPECT_EQ(placement_->model_status().telemetry_records, 100U);
  uint64_t found = 0;
  const std::byte* at = telemetry_ + sizeof(*header);
  for (uint32_t ring = 0; ring < header->ring_count; ++ring) {
    const auto* ring_header = reinterpret_cast<const wire::TelemetryRingHeader*>(at);
    if (ring_header->head != 0) {
      const auto* slots = reinterpret_cast<const wire::TelemetryRecord*>(at + sizeof(*ring_header));
      EXPECT_EQ(slots[99 % 64].block, 99U);
      EXPECT_EQ(slots[99 % 64].request_pages, 4U);
      EXPECT_EQ(slots[99 % 64].kind, wire::TelemetryKind::kOverwrite);
      EXPECT_EQ(slots[99 % 64].file_place, 9);
      found += ring_header->head;
    }
    at += sizeof(*ring_header) + 64 * sizeof(wire::TelemetryRecord);
  }
  EXPECT_EQ(found, 100U);
}

}  // namespace
}  // namespace streamfs::placement
