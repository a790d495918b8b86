// Publishes model tables by the protocol of base/wire/model_table.h: fill the idle buffer, sum it,
// then name it active. A reader never sees a table half written, and one killed in the middle
// leaves the last table serving. Thread safety: one thread; one writer a model area.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/wire/model_table.h"
#include "classifierd/src_core/shared_map.h"

namespace streamfs::classifier {

class ModelWriter {
 public:
  // Throws std::runtime_error if the memory is not a model area of this version.
  explicit ModelWriter(int fd);

  // Returns the new generation. `kind` names the model for people.
  // Errors: throws std::invalid_argument if `entries` has the wrong size or holds a pStream the
  // device does not have, or if `kind` is too long: such a table must never reach the filesystem.
  uint64_t publish(std::span<const uint8_t> entries, uint32_t pstream_count, uint64_t clock_pages,
                   std::string_view kind);
  void heartbeat(uint64_t now_ms);
  uint64_t generation() const;
  std::vector<uint8_t> uuid() const;

 private:
  wire::ModelHeader& header() const;
  wire::ModelBuffer& buffer(uint64_t generation) const;

  SharedMap map_;
};

}  // namespace streamfs::classifier
