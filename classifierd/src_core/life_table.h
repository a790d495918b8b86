// The life table: every page written belongs to a cell (vStream × shape, model_table.h); its death
// by overwrite or trim, or its staying alive, is evidence of how long that cell's pages live.
//
// Time is counted in pages written. The table runs its own clock, following the records' and
// bridging their jumps, so that a remount or garbage does not turn into absurd ages. At the end of
// each epoch evidence is committed and decays. Epochs are short at first and double until they
// reach `epoch_pages`: a cold table speaks after 1,024 pages. On a device with more alive than
// birth_map.h holds, deaths and survivors are counted in a sample and scaled; volumes are exact.
// If a vStream's number is used again, its generation is another. The life table then forgets what
// the earlier use taught it, and counts a late record of that use for vStream 0.
//
// Thread safety: none. Crash: memory only; a caller keeps cells() and passes them to restore().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/wire/model_table.h"
#include "base/wire/telemetry.h"
#include "base/zeroed_array.h"
#include "classifierd/src_core/birth_map.h"
#include "classifierd/src_core/survival.h"
#include "learning/table.h"

namespace streamfs::classifier {

constexpr uint32_t cell_of(uint16_t vstream, uint32_t shape) {
  return uint32_t{vstream} * wire::kShapes + shape;
}
inline constexpr uint32_t kCells = wire::kModelVStreams * wire::kShapes;

// The observations of one cell.
struct CellLife {
  uint32_t cell = 0;
  double volume_pages = 0;  // written lately: halves with each 65,536 pages written to the device
  Hazard known;
  // Writes and trims that something died by, fading as `known` does: pages that die together are
  // one witness. Not kept between runs.
  double events = 0;
};

class LifeTable {
 public:
  // `groups_max`: the most groups of 64 KiB whose births are remembered (birth_map.h).
  // `decay`: the factor by which evidence shrinks with each 65,536 pages written.
  LifeTable(uint64_t capacity_blocks, uint32_t epoch_pages, double decay,
            size_t groups_max = BirthMap::kGroupsMax);

  // Learns from records in clock order, up to the record that completes the epoch; returns how many
  // it took. `chunks` has the class that each chunk of the device had when the pages were written.
  // Unbelievable records are skipped and counted in rejected().
  size_t feed(std::span<const wire::TelemetryRecord> records, learning::ChunkMap chunks);
  bool epoch_due() const { return clock_ - epoch_start_ >= epoch_now_; }
  // Commits the epoch's evidence and decays all evidence by the pages that the epoch had, as for
  // 65,536 pages at most. May be called before the epoch is due.
  void end_epoch();
  // Forgets when the live pages were written. Call it when many records were lost.
  void forget_births();

  std::vector<CellLife> cells() const;
  // Replaces all evidence by `cells`. Returns false, and changes nothing, if a number is negative
  // or not finite, or a cell does not exist.
  bool restore(std::span<const CellLife> cells);

  uint64_t clock_pages() const { return clock_; }
  uint64_t device_clock_pages() const { return clock_ - offset_; }
  uint64_t epochs() const { return epochs_; }
  uint64_t rejected() const { return rejected_; }
  uint64_t clock_jumps() const { return clock_jumps_; }
  // Live pages whose writes were seen; scaled if only a sample is followed.
  uint64_t live_pages() const { return births_.alive() * births_.one_in(); }
  uint64_t deaths() const { return deaths_; }
  // Returns N if one in N groups of blocks is followed.
  uint64_t one_in() const { return births_.one_in(); }
  uint32_t epoch_pages() const { return epoch_now_; }

 private:
  struct Cell {
    CellLife life;
    Cohorts cohorts;
    uint64_t last_event = 0;  // number of the record
  };
  // The generations of a number's current use and of the use before it; -1: none.
  struct Uses {
    int16_t now = -1, before = -1;
  };
  uint64_t local_clock(uint64_t device_clock);
  void learn(const wire::TelemetryRecord& record, learning::ChunkMap chunks);
  uint16_t vstream_of(const wire::TelemetryRecord& record);
  void forget(uint16_t vstream);
  void write_page(uint64_t block, uint64_t now, uint32_t cell);
  void kill(uint64_t block, uint64_t pages, uint64_t now);
  void died(const BirthMap::Birth& birth, uint64_t now);
  void follow_fewer(uint64_t now);
  uint32_t index_of(uint32_t cell);

  uint64_t capacity_blocks_;
  uint32_t epoch_target_;
  double decay_;
  BirthMap births_;
  ZeroedArray<uint32_t> index_;  // cell → place in cells_ + 1
  std::vector<Uses> uses_;       // by vStream
  std::vector<Cell> cells_;
  uint32_t epoch_now_;
  uint64_t clock_ = 0;
  uint64_t epoch_start_ = 0;
  uint64_t offset_ = 0;  // local = device clock + offset, modulo 2^64
  bool anchored_ = false;
  uint64_t epochs_ = 0;
  uint64_t records_ = 0;
  uint64_t rejected_ = 0;
  uint64_t clock_jumps_ = 0;
  uint64_t deaths_ = 0;
};

}  // namespace streamfs::classifier
