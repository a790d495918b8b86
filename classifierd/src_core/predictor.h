// A logistic model fed with records, its lifetimes cut into classes in one way or several at once.
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/wire/telemetry.h"
#include "learning/classes.h"
#include "learning/lifetime_model.h"
#include "learning/path_model.h"

namespace streamfs::classifier {

// Returns a written record as a request, without expected lifetimes.
learning::Request request_of(const wire::TelemetryRecord& record);

class Predictor {
 public:
  // `classes`: the number of classes of each cut. `features`: "path", the features that the
  // filesystem knows (learning/path_model.h), or "history", those of learning/lifetime_model.h.
  // Throws std::invalid_argument for other features, for no cut, and for a number of classes
  // outside 1..128.
  Predictor(uint64_t device_pages, uint64_t live_pages, const std::vector<uint32_t>& classes,
            const std::string& features);

  // Returns as many classes as there are cuts for each page written, page by page: what was known
  // before the page says. `expected`: what a life table says of each (vStream, shape), in half
  // steps of log2 plus one, laid out as in model_table.h, or nothing. Unbelievable records are left
  // out. Throws std::invalid_argument if it is of another size.
  std::vector<uint8_t> feed(std::span<const wire::TelemetryRecord> records,
                            std::span<const uint8_t> expected);

  size_t cuts() const { return cuts_.size(); }
  // Returns the model if it has path features, else null.
  const learning::PathModel* path() const { return std::get_if<learning::PathModel>(&model_); }
  uint64_t clock() const {
    return std::visit([](const auto& model) { return model.clock(); }, model_);
  }
  std::array<uint64_t, learning::kLandmarks> landmarks() const { return axis().ages(); }
  // Lifetimes at which classes begin, on the axis of learning/landmarks.h. Throws
  // std::out_of_range.
  std::vector<float> edges(size_t cut) const { return cuts_.at(cut).edges(); }

 private:
  const learning::Landmarks& axis() const {
    return std::visit(
        [](const auto& model) -> const learning::Landmarks& { return model.landmarks(); }, model_);
  }
  template <typename Model>
  void feed_to(Model& model, std::span<const wire::TelemetryRecord> records,
               std::span<const uint8_t> expected, std::vector<uint8_t>& out);

  std::variant<learning::LifetimeModel, learning::PathModel> model_;
  std::vector<learning::Classes> cuts_;
};

}  // namespace streamfs::classifier
