#include "learning/placement_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "base/checksum.h"
#include "base/types.h"
#include "base/wire/model_table.h"
#include "learning/classes.h"
#include "learning/path_model.h"
#include "learning/path_weights.h"
#include "learning/request.h"

namespace streamfs::learning {
namespace {

constexpr uint64_t kModelLive = 16384;
constexpr uint32_t kModelClasses = 8;

// A buffer that says what `model` and `classes` know; class c has pStream c.
std::unique_ptr<wire::ModelBuffer> published(const PathModel& model, const Classes& classes) {
  auto out = std::make_unique<wire::ModelBuffer>();
  out->generation = 1;
  out->pstream_count = kModelClasses;
  out->serves = wire::ModelServes::kLogistic;
  out->classes = classes.count();
  out->live_pages = model.landmarks().live_pages();
  std::ranges::copy(classes.edges(), out->edges);
  for (uint32_t cls = 0; cls < kModelClasses; ++cls) out->pstreams[cls] = static_cast<uint8_t>(cls);
  out->table_rows = 4;
  for (uint16_t v = 0; v < 4; ++v) {
    out->row_of[v] = v;
    std::fill_n(out->expected + v * wire::kShapes, wire::kShapes, static_cast<uint8_t>(9 * v));
  }
  for (uint64_t chunk = 0; chunk < 4 * kModelLive / wire::kChunkPages; ++chunk) {
    out->chunks[chunk] = static_cast<uint8_t>(chunk % wire::kChunkClasses);
    out->expected[chunk % (4 * wire::kShapes)] = static_cast<uint8_t>(chunk % 40);
  }
  const WeightRows rows = model.weights().rows();
  static_assert(sizeof(out->weights) == sizeof(rows[0]) * kRows);
  std::memcpy(out->weights, rows.data(), sizeof(out->weights));
  out->checksum = crc32c(wire::summed(*out));
  return out;
}

Request random_request(std::mt19937& random, const wire::ModelBuffer* expected) {
  const auto vstream = static_cast<uint16_t>(random() % 4);
  const auto pages = static_cast<uint32_t>(1 + random() % 40);
  const auto age = static_cast<uint8_t>(random() % wire::kAgeClasses);
  Request out{.page = vstream * kModelLive + random() % (kModelLive / (vstream + 1)),
              .pages = pages,
              .whole_pages = pages,
              .vstream = vstream,
              .age = age};
  if (expected == nullptr) return out;
  out.chunks = {expected->chunks};
  out.expected = std::span(expected->expected).subspan(vstream * wire::kShapes, wire::kShapes);
  return out;
}

// The daemon's shadow devices place by PathModel and the edges of Classes, the filesystem by
// PlacementModel.
TEST(PlacementModel, PlacesAsTheModelThatWasPublished) {
  std::mt19937 random(7);
  PathModel trained(8 * kModelLive, kModelLive);
  Classes cut(kModelClasses, trained.landmarks());
  const auto expected = published(trained, cut);
  while (trained.clock() < 20 * kModelLive)
    trained.write(random_request(random, expected.get()),
                  [&](float lifetime, bool) { cut.count(lifetime); });
  trained.snapshot();
  for (int i = 0; i < 2000; ++i)  // classes are cut again by what the snapshot says
    trained.write(random_request(random, expected.get()),
                  [&](float lifetime, bool) { cut.count(lifetime); });
  PlacementModel model;
  const auto buffer = published(trained, cut);
  const std::vector<float> edges = cut.edges();
  ASSERT_TRUE(model.deserialize(*buffer, kModelClasses).ok());
  std::set<uint32_t> seen;
  PlacementModel::Cursor cursor;
  uint32_t last = 0;
  for (int i = 0; i < 2000; ++i) {
    Request request = random_request(random, buffer.get());
    uint32_t page = 0;
    trained.write(request, [&](float lifetime, bool follows) {
      last = follows ? class_after(last, lifetime, edges) : class_of(lifetime, edges);
      Request without = request;
      without.expected = {};
      without.chunks = {};
      ASSERT_EQ(model.place(without, page++, cursor).value, last);
      seen.insert(last);
    });
  }
  EXPECT_GE(seen.size(), 3U) << "the test shows little if all pages go to one pStream";
}

TEST(PlacementModel, APageFollowsOnlyItsNeighbourInTheSameRequest) {
  PathModel untrained(8 * kModelLive, kModelLive);
  Classes cut(kModelClasses, untrained.landmarks());
  const auto buffer = published(untrained, cut);
  // Without weights all pages have one lifetime. A cursor may name another class.
  PlacementModel model;
  ASSERT_TRUE(model.deserialize(*buffer, kModelClasses).ok());
  PlacementModel::Cursor first;
  const Request request{.page = 10, .pages = 2, .whole_pages = 4, .offset = 1};
  const uint32_t own = model.place(request, 0, first).value;
  const auto class_with = [&](uint64_t page, const Request& next) {
    PlacementModel::Cursor cursor = first;
    cursor.page = page;
    cursor.cls = own - 1;
    return model.place(next, 0, cursor).value;
  };
  ASSERT_LT(first.lifetime - cut.edges()[own - 1], kLifetimeDoubt) << "the class below is near";
  EXPECT_EQ(class_with(9, request), own - 1);
  EXPECT_EQ(class_with(8, request), own) << "another place";
  EXPECT_EQ(class_with(9, {.page = 10, .pages = 1, .whole_pages = 1}), own) << "a new request";
}

}  // namespace
}  // namespace streamfs::learning
