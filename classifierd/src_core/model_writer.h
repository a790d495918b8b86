// Publishes placement models by the protocol of base/wire/model_table.h: fills the idle buffer,
// sums it, then names it active. If the writer is killed, the last model serves on.
// Thread safety: one thread; one writer a model area.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/wire/model_table.h"
#include "base/wire/telemetry.h"
#include "classifierd/src_core/predictor.h"
#include "classifierd/src_core/shared_map.h"
#include "learning/placement_model.h"

namespace streamfs::classifier {

// A logistic model that places data.
struct ServingLogistic {
  const Predictor& model;             // with path features
  size_t cut = 0;                     // of its ways of cutting
  std::span<const uint8_t> pstreams;  // of each class
  std::span<const uint8_t> expected;  // as Predictor::feed() takes it
};

class ModelWriter {
 public:
  // Throws std::runtime_error if the memory is not a model area of this version.
  explicit ModelWriter(int fd);

  // Returns the new generation. `entries` is the table, which places data unless `logistic` does.
  // `kind` names the model for people. Throws std::invalid_argument, and publishes nothing, if a
  // span has the wrong size or the filesystem would refuse the model.
  uint64_t publish(std::span<const uint8_t> entries, uint32_t pstream_count, uint64_t clock_pages,
                   std::string_view kind, const std::optional<ServingLogistic>& logistic = {});
  // Returns the pStream of each page written, by the model that was published last.
  std::vector<uint8_t> place(std::span<const wire::TelemetryRecord> records) const;
  void heartbeat(uint64_t now_ms);
  uint64_t generation() const;
  std::vector<uint8_t> uuid() const;

 private:
  wire::ModelHeader& header() const;
  wire::ModelBuffer& buffer(uint64_t generation) const;

  SharedMap map_;
  learning::PlacementModel published_;
};

}  // namespace streamfs::classifier
