#include "classifierd/src_core/predictor.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/wire/record_check.h"
#include "base/wire/telemetry.h"
#include "learning/classes.h"
#include "learning/logistic.h"
#include "learning/path_model.h"
#include "learning/path_weights.h"
#include "learning/request.h"
#include "learning/tokens.h"

namespace streamfs::classifier {

using learning::Classes;
using wire::TelemetryRecord;

learning::Request request_of(const TelemetryRecord& record) {
  return {.page = record.block,
          .pages = record.pages,
          .whole_pages = record.request_pages,
          .offset = record.request_offset,
          .vstream = record.vstream,
          .age = record.age,
          .file_place = record.file_place};
}

namespace {

constexpr size_t kWeights = size_t{learning::kRows} * learning::kLandmarks;
constexpr float kGradientSteps = 4;  // a doubling

void check(const learning::Table& expected) {
  if (!expected.rows.empty() && !expected.is_sound())
    throw std::invalid_argument("expected lifetimes: a row for each vStream there can be");
}

learning::Request request_with(const TelemetryRecord& record, Predictor::Known known) {
  learning::Request out = request_of(record);
  out.expected = known.expected.row(record.vstream);
  out.chunks = known.chunks;
  return out;
}

}  // namespace

Predictor::Predictor(uint64_t device_pages, uint64_t live_pages,
                     const std::vector<uint32_t>& classes)
    : model_(device_pages, live_pages) {
  if (classes.empty()) throw std::invalid_argument("no number of classes");
  for (const uint32_t count : classes) {
    if (count < 1 || count > Classes::kCountMax)
      throw std::invalid_argument("between 1 and 128 classes");
    const Classes equally_wide(count, model_.landmarks());
    cuts_.push_back({equally_wide, equally_wide.edges()});
  }
}

std::vector<uint8_t> Predictor::feed(std::span<const TelemetryRecord> records, Known known) {
  check(known.expected);
  std::vector<uint8_t> out;
  for (const TelemetryRecord& record : records) {
    if (!believable(record, wire::kCapacityBlocksMax)) continue;
    if (record.kind == wire::TelemetryKind::kTrim) {
      model_.trim(record.block, record.pages);
      continue;
    }
    model_.write(request_with(record, known), [&](float lifetime, bool follows) {
      for (Cut& cut : cuts_) {
        cut.last = follows ? learning::class_after(cut.last, lifetime, cut.edges)
                           : learning::class_of(lifetime, cut.edges);
        cut.classes.count(lifetime);
        out.push_back(static_cast<uint8_t>(cut.last));
      }
    });
  }
  return out;
}

std::vector<uint8_t> Predictor::classes_of(std::span<const TelemetryRecord> records, Known known,
                                           size_t cut) const {
  check(known.expected);
  const std::vector<float>& edges = cuts_.at(cut).edges;
  const learning::WeightRows rows = model_.weights().rows();
  std::vector<uint8_t> out;
  uint32_t cls = 0;
  uint64_t before = learning::kNoPage;
  for (const TelemetryRecord& record : records) {
    if (!believable(record, wire::kCapacityBlocksMax) || record.kind == wire::TelemetryKind::kTrim)
      continue;
    const learning::Request request = request_with(record, known);
    for (uint32_t i = 0; i < request.pages; ++i) {
      const float lifetime =
          lifetime_of(tokens_of(path_view(request, i)), rows, model_.landmarks());
      cls = request.follows(i, before) ? learning::class_after(cls, lifetime, edges)
                                       : learning::class_of(lifetime, edges);
      before = request.page + i;
      out.push_back(static_cast<uint8_t>(cls));
    }
  }
  return out;
}

void Predictor::end_epoch() {
  model_.snapshot();
  for (Cut& cut : cuts_) cut.edges = cut.classes.edges();
}

std::vector<int8_t> Predictor::gradients() const {
  std::vector<int8_t> out;
  out.reserve(kWeights);
  for (uint32_t row = 0; row < learning::kRows; ++row) {
    for (uint32_t j = 0; j < learning::kLandmarks; ++j) {
      const float steps = kGradientSteps * std::log2(model_.learned().gradients(row, j));
      out.push_back(static_cast<int8_t>(std::clamp(std::round(steps), -128.0F, 127.0F)));
    }
  }
  return out;
}

void Predictor::restore(std::span<const int8_t> weights, std::span<const int8_t> gradients,
                        const std::vector<std::vector<float>>& edges) {
  if (weights.size() != kWeights || gradients.size() != kWeights || edges.size() != cuts_.size())
    throw std::invalid_argument("a logistic model of another size");
  std::vector<Cut> cuts = cuts_;
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (!cuts[i].classes.restore(edges[i])) throw std::invalid_argument("classes that cannot be");
  }
  learning::Logistic<learning::kPathTokens> learned;
  for (size_t i = 0; i < kWeights; ++i) {
    const auto row = static_cast<uint32_t>(i / learning::kLandmarks);
    learned.set(row, static_cast<uint32_t>(i % learning::kLandmarks),
                static_cast<float>(weights[i]) * learning::kWeightUnit,
                std::exp2(static_cast<float>(gradients[i]) / kGradientSteps));
  }
  cuts_ = std::move(cuts);
  model_.restore(std::move(learned));
  end_epoch();
}

}  // namespace streamfs::classifier
