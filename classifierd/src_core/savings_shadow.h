// Estimates what streams save on this device. Three small devices without data see the same writes:
//   off      one stream for host writes and one open block for copies, as devices without streams
//   placed   the streams that the filesystem chose; copies go where `gc_mode` says
//   oracle   each page goes by its true lifetime
//
// A sample of chunks is followed (chunk_sample.h), in disjoint parts. Each part has three devices
// of its own, and the differences between the parts tell how certain the figures are.
//
// The oracle learns a lifetime by waiting. It places a write only when as many pages more were
// written and trimmed as the device holds. A page that died by then goes to the stream of its
// lifetime, in classes whose borders are powers of two of the capacity; any other page goes to the
// last stream.
// Thread safety: none. Memory: some 50 bytes for each page followed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/wire/telemetry.h"
#include "classifierd/src_core/chunk_sample.h"
#include "ssd/geometry.h"

namespace streamfs::classifier {

class SavingsShadow {
 public:
  struct Settings {
    uint64_t capacity_pages = 0;
    uint32_t pstreams = 1;
    double spare = 0.07;         // physical ÷ capacity − 1
    uint32_t block_pages = 256;  // erased together
    ssd::GcMode gc_mode = ssd::GcMode::kOwnFrontier;
    ssd::VictimKind victim = ssd::VictimKind::kGreedy;
    uint32_t one_in = 64;  // one in so many chunks is followed, by all parts together
    uint32_t parts = 8;
  };
  // All counts of one part, in 4 KiB pages.
  struct Counts {
    uint64_t written = 0, off_copied = 0, placed_copied = 0;
    uint64_t oracle_written = 0, oracle_copied = 0;
    uint64_t refused = 0;  // writes that found a device full: the caller judges whether too many
  };

  // Throws std::invalid_argument if a setting is 0 or out of its range.
  explicit SavingsShadow(const Settings& settings);
  ~SavingsShadow();
  SavingsShadow(const SavingsShadow&) = delete;
  SavingsShadow& operator=(const SavingsShadow&) = delete;

  void feed(std::span<const wire::TelemetryRecord> records);
  // Writes the device's content at the start: `pages` from `first` on, once, in order, to the last
  // stream. `written` does not count them; `oracle_written` does.
  void fill(uint64_t pages, uint64_t first = 0);
  // Closes the open block of a stream that placement has stopped using.
  void release(uint32_t stream);
  std::vector<Counts> counts() const;            // of each part
  uint64_t written() const { return written_; }  // pages, in all chunks, followed or not
  // Each part follows one in so many chunks.
  uint64_t stride() const { return sample_.stride(); }

 private:
  class Part;

  const uint64_t capacity_;
  const ChunkSample sample_;
  std::vector<std::unique_ptr<Part>> parts_;
  uint64_t written_ = 0;
};

}  // namespace streamfs::classifier
