#include "classifierd/src_core/predictor.h"

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/wire/model_table.h"
#include "base/wire/record_check.h"
#include "base/wire/telemetry.h"
#include "learning/classes.h"
#include "learning/lifetime_model.h"
#include "learning/path_model.h"
#include "learning/request.h"

namespace streamfs::classifier {

using wire::TelemetryRecord;

namespace {

using Model = std::variant<learning::LifetimeModel, learning::PathModel>;

Model model_of(const std::string& features, uint64_t device_pages, uint64_t live_pages) {
  if (features == "path")
    return Model(std::in_place_type<learning::PathModel>, device_pages, live_pages);
  if (features == "history")
    return Model(std::in_place_type<learning::LifetimeModel>, device_pages, live_pages);
  throw std::invalid_argument("unknown features: choose path or history");
}

}  // namespace

learning::Request request_of(const TelemetryRecord& record) {
  return {.page = record.block,
          .pages = record.pages,
          .whole_pages = record.request_pages,
          .offset = record.request_offset,
          .vstream = record.vstream,
          .age = record.age};
}

Predictor::Predictor(uint64_t device_pages, uint64_t live_pages,
                     const std::vector<uint32_t>& classes, const std::string& features)
    : model_(model_of(features, device_pages, live_pages)) {
  if (classes.empty()) throw std::invalid_argument("no number of classes");
  for (const uint32_t count : classes) {
    if (count < 1 || count > learning::Classes::kCountMax) {
      throw std::invalid_argument("between 1 and 128 classes");
    }
    cuts_.emplace_back(count, axis());
  }
}

std::vector<uint8_t> Predictor::feed(std::span<const TelemetryRecord> records,
                                     std::span<const uint8_t> expected) {
  if (!expected.empty() && expected.size() != wire::kModelEntries) {
    throw std::invalid_argument("expected lifetimes: a row for each vStream there can be");
  }
  std::vector<uint8_t> out;
  std::visit([&](auto& model) { feed_to(model, records, expected, out); }, model_);
  return out;
}

template <typename Model>
void Predictor::feed_to(Model& model, std::span<const TelemetryRecord> records,
                        std::span<const uint8_t> expected, std::vector<uint8_t>& out) {
  for (const TelemetryRecord& record : records) {
    if (!believable(record, wire::kCapacityBlocksMax)) continue;
    if (record.kind == wire::TelemetryKind::kTrim) {
      model.trim(record.block, record.pages);
      continue;
    }
    learning::Request request = request_of(record);
    const uint32_t row = uint32_t{record.vstream} * wire::kShapeStride;
    if (!expected.empty()) request.expected = expected.subspan(row, wire::kShapes);
    model.write(request, [&](float lifetime, bool follows) {
      for (learning::Classes& cut : cuts_) {
        out.push_back(static_cast<uint8_t>(cut.place(lifetime, follows)));
      }
    });
  }
}

}  // namespace streamfs::classifier
