// A recorded or generated run of records, page by page, for offline replay: which page writes
// overwrite, when each dies, which pStream a table gives it.
// Thread safety: const after construction. Input that is not believable is skipped and counted.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/wire/telemetry.h"
#include "learning/table.h"

namespace streamfs::classifier {

inline constexpr uint64_t kImmortal = std::numeric_limits<uint64_t>::max();

// The records with kind, age and clock as a filesystem would have reported them whose capacity is
// what is live at most: runs are split where what they overwrite is of another age, unbelievable
// records are left out.
std::vector<wire::TelemetryRecord> as_telemetry(std::span<const wire::TelemetryRecord> records);

// Returns the table's byte for every page written, in order. Throws std::invalid_argument if the
// table is not sound.
std::vector<uint8_t> tags(std::span<const wire::TelemetryRecord> records, learning::Table table,
                          learning::ChunkMap chunks);

class PageTrace {
 public:
  struct Step {
    uint32_t page = 0;  // dense number of the block
    bool trim = false;
  };
  explicit PageTrace(std::span<const wire::TelemetryRecord> records);

  std::span<const Step> steps() const { return steps_; }
  uint32_t pages() const { return pages_; }
  uint32_t peak_live() const { return peak_live_; }
  uint64_t writes() const { return lifetimes_.size(); }
  // Per page written: pages written until its death, kImmortal if it outlives the trace.
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
