// The saving by streams on this device. Three small devices without data see the same writes: with
// streams off, as the filesystem placed them, and with the deaths known that have been seen by now.
//
// A sample of chunks is followed (chunk_sample.h), and the devices are that much smaller. The
// sample has `parts`, disjoint, with three devices each: how much they differ says how sure the
// figures are. Streams off means one stream and an open block for copies, as devices have it. The
// oracle's device is a capacity of writes behind: what died within that is placed by its lifetime
// (edges as ssd-sim's oracle with thresholds), the rest with what lives longest. Thread safety:
// none. Memory: some 50 bytes a page followed.
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
    uint32_t one_in = 64;  // chunks; all parts together
    uint32_t parts = 8;
  };
  // All counts of one part, in 4 KiB pages.
  struct Counts {
    uint64_t written = 0, off_copied = 0, placed_copied = 0;
    uint64_t oracle_written = 0, oracle_copied = 0;
    uint64_t refused = 0;  // writes that found a device full; with many, no figure counts
  };

  explicit SavingsShadow(const Settings& settings);
  ~SavingsShadow();
  SavingsShadow(const SavingsShadow&) = delete;
  SavingsShadow& operator=(const SavingsShadow&) = delete;

  void feed(std::span<const wire::TelemetryRecord> records);
  // The device's content at the start: `pages` from `first` on, written once in order.
  void fill(uint64_t pages, uint64_t first = 0);
  // Placement has no use for the stream for long: its open block is closed.
  void release(uint32_t stream);
  std::vector<Counts> counts() const;            // of each part
  uint64_t written() const { return written_; }  // pages, of all chunks, ever
  uint64_t stride() const { return sample_.stride(); }

 private:
  class Part;

  const uint64_t capacity_;
  const ChunkSample sample_;
  std::vector<std::unique_ptr<Part>> parts_;
  uint64_t written_ = 0;
};

}  // namespace streamfs::classifier
