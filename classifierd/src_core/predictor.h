// Feeds records to the logistic model of path features (learning/path_model.h), and cuts its
// lifetimes into classes. A predictor has one or more cuts, each with its own number of classes.
//
// Predictions use the weights and the edges of the classes that end_epoch() saved last. ModelWriter
// publishes that snapshot, so the filesystem places as feed() says.
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/wire/telemetry.h"
#include "learning/classes.h"
#include "learning/landmarks.h"
#include "learning/path_model.h"
#include "learning/request.h"
#include "learning/table.h"

namespace streamfs::classifier {

// Returns a written record as a request, without expected lifetimes and chunk classes.
learning::Request request_of(const wire::TelemetryRecord& record);

class Predictor {
 public:
  // `live_pages`: as in PathModel. `classes`: the number of classes of each cut. Throws
  // std::invalid_argument for no cut, and for a number of classes outside 1..128.
  Predictor(uint64_t device_pages, uint64_t live_pages, const std::vector<uint32_t>& classes);

  // The lifetimes that the life table expects, as half_log2 plus one (learning/steps.h), and the
  // classes of chunks; both may be empty.
  struct Known {
    learning::Table expected;
    learning::ChunkMap chunks;
  };
  // Returns, for each page written, its class in every cut: all cuts of the first page, then all of
  // the second. Learns from the records, trims too. Unbelievable records are left out. Throws
  // std::invalid_argument if the table of expectations is neither empty nor sound.
  std::vector<uint8_t> feed(std::span<const wire::TelemetryRecord> records, Known known);
  // Returns the class of each page written by one cut of the snapshot. Learns nothing. Throws as
  // feed() does, and std::out_of_range for a cut that is not there.
  std::vector<uint8_t> classes_of(std::span<const wire::TelemetryRecord> records, Known known,
                                  size_t cut) const;
  // Takes a snapshot: later predictions use what was learned so far.
  void end_epoch();

  size_t cuts() const { return cuts_.size(); }
  const learning::PathModel& model() const { return model_; }
  uint64_t clock() const { return model_.clock(); }
  std::array<uint64_t, learning::kLandmarks> landmarks() const { return model_.landmarks().ages(); }
  // Returns the lower bounds of the snapshot's classes but the first, on the axis of
  // learning/landmarks.h. Throws std::out_of_range.
  const std::vector<float>& edges(size_t cut) const { return cuts_.at(cut).edges; }

  // The state that outlives a process is the weights of model(), the gradients and the edges.
  // gradients() returns the sum of squared gradients of each weight, [row][landmark], in quarters
  // of log2. restore() takes all three, the weights in 32nds, and takes a snapshot. It throws
  // std::invalid_argument, and changes nothing, if a size or an edge is wrong.
  std::vector<int8_t> gradients() const;
  void restore(std::span<const int8_t> weights, std::span<const int8_t> gradients,
               const std::vector<std::vector<float>>& edges);

 private:
  struct Cut {
    learning::Classes classes;  // from the pages
    std::vector<float> edges;   // of the snapshot
    uint32_t last = 0;          // class of the page placed last
  };

  learning::PathModel model_;
  std::vector<Cut> cuts_;
};

}  // namespace streamfs::classifier
