// Publishes placement models by the protocol of base/wire/model_table.h: prepare() fills the idle
// buffer and sets its checksum, publish() makes it active. If the writer is killed, the model that
// was published last serves on.
// Thread safety: one thread. Requires: a model area has one writer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/wire/model_table.h"
#include "base/wire/stored_model.h"
#include "base/wire/telemetry.h"
#include "classifierd/src_core/predictor.h"
#include "classifierd/src_core/shared_map.h"
#include "learning/placement_model.h"

namespace streamfs::classifier {

// A logistic model that places data.
struct ServingLogistic {
  const Predictor& model;
  size_t cut = 0;                     // index of the model's cut into classes (Predictor)
  std::span<const uint8_t> pstreams;  // of each class
};
// The table of pStreams, which places data unless a logistic model does, and the expectations and
// chunk classes that both use.
struct ServingTable {
  std::span<const uint8_t> pstreams;  // rows of the table
  Predictor::Known known;             // expectations of the same rows
};

class ModelWriter {
 public:
  // Maps the model area; `fd` stays the caller's. Throws std::runtime_error if it cannot be mapped
  // or is not a model area of this version.
  explicit ModelWriter(int fd);

  // Prepares a model, in place of one that was prepared and not published. `kind` names it for
  // people. Throws std::invalid_argument if a span has the wrong size or the filesystem would
  // refuse the model; then no model is prepared.
  void prepare(const ServingTable& table, uint32_t pstream_count, uint64_t clock_pages,
               std::string_view kind, const std::optional<ServingLogistic>& logistic = {});
  // Returns the pStream of each page written, by the model prepared last, as the filesystem
  // evaluates it. Throws std::logic_error if there is none.
  std::vector<uint8_t> place(std::span<const wire::TelemetryRecord> records) const;
  // Publishes the prepared model and returns its generation. Throws std::logic_error if no model
  // was prepared since the last publish().
  uint64_t publish();
  // Returns the published model as the file with which the next mount begins. `uses`: see
  // wire::StoredModel. Throws std::logic_error if the model prepared last is not published, and
  // std::invalid_argument unless `uses` has an entry for each vStream.
  std::unique_ptr<wire::StoredModel> stored(std::span<const uint16_t> uses) const;
  void heartbeat(uint64_t now_ms);
  // Returns the generation of the published model; 0: none was published.
  uint64_t generation() const;
  std::vector<uint8_t> uuid() const;

 private:
  wire::ModelHeader& header() const;
  wire::ModelBuffer& buffer(uint64_t generation) const;

  SharedMap map_;
  learning::PlacementModel prepared_;  // a copy of the buffer, if is_prepared_
  bool is_prepared_ = false;
};

}  // namespace streamfs::classifier
