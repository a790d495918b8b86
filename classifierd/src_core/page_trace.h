// Prepares recorded or generated records for offline replay, page by page: the lifetime of each
// write, its age class, and the pStream that a table gives it. Unbelievable records are left out.
// Thread safety: const after construction.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/wire/telemetry.h"
#include "learning/table.h"

namespace streamfs::classifier {

inline constexpr uint64_t kImmortal = std::numeric_limits<uint64_t>::max();

// Returns the records with the kind, age class and clock that a filesystem would have reported if
// its capacity were the records' peak of live pages. A record is split where the age class changes.
std::vector<wire::TelemetryRecord> as_telemetry(std::span<const wire::TelemetryRecord> records);

// Returns the table's byte for the vStream and shape of every page written, in order. Throws
// std::invalid_argument if the table is not sound.
std::vector<uint8_t> tags(std::span<const wire::TelemetryRecord> records, learning::Table table,
                          learning::ChunkMap chunks);

class PageTrace {
 public:
  struct Step {
    uint32_t page = 0;  // blocks are numbered in the order in which they are first written
    bool trim = false;
  };
  explicit PageTrace(std::span<const wire::TelemetryRecord> records);

  std::span<const Step> steps() const { return steps_; }
  uint32_t pages() const { return pages_; }
  uint32_t peak_live() const { return peak_live_; }
  uint64_t writes() const { return lifetimes_.size(); }
  // For each page written: the pages written until its death; kImmortal if it outlives the trace.
  std::span<const uint64_t> lifetimes() const { return lifetimes_; }

 private:
  void number_pages(std::span<const wire::TelemetryRecord> records);
  void find_lifetimes();

  std::vector<Step> steps_;
  std::vector<uint64_t> lifetimes_;
  uint32_t pages_ = 0;
  uint32_t peak_live_ = 0;
};

}  // namespace streamfs::classifier
