// Turns requests that were recorded on another file system into those that streamfs would send. New
// data of a file goes to free blocks, an overwrite goes to the block of the old data, and freed
// blocks are trimmed when streamfs would trim them. Until then they are live to the SSD, although
// the other file system trimmed or reused them at once.
//
// Times follow the filesystem (fuse-fs/data/epoch.h, maintenance.h, trim_queue.h). A periodic pass
// trims freed blocks. A block whose data an epoch has committed waits for the end of the current
// epoch, and then for the pass.
// Thread safety: none. Memory: some 60 bytes a page that was written.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/wire/telemetry.h"

namespace streamfs::classifier {

class OwnPlaces {
 public:
  // `log_pages` of the device hold the metadata log and no files. Throws std::invalid_argument if
  // that leaves no room, or for more than wire::kCapacityBlocksMax pages.
  OwnPlaces(uint64_t capacity_pages, uint64_t log_pages);

  // Declares pages that files occupy from the beginning. Pages beyond the device are left out.
  // Requires: called before the first take().
  void hold(uint64_t first, uint64_t pages);
  // Returns streamfs's requests for these, which come in order and with times. Unbelievable records
  // are left out. The kind of a result says only trim or not; age and clock mean nothing
  // (as_telemetry() in page_trace.h sets them). Throws std::invalid_argument if the files do not
  // fit the device.
  std::vector<wire::TelemetryRecord> take(std::span<const wire::TelemetryRecord> records);
  // Returns the mean number of pages that were freed and not yet trimmed, over the pages written.
  double waiting() const { return written_ == 0 ? 0 : waited_ / static_cast<double>(written_); }

 private:
  struct Run {
    uint64_t first, pages;
  };
  struct Place {
    uint64_t page;
    int64_t born_ms;
  };
  using Out = std::vector<wire::TelemetryRecord>;

  void go_on(int64_t now, Out& out);
  bool epoch_ends(int64_t now) const;
  void pass(Out& out);
  void write(const wire::TelemetryRecord& record, int64_t now, Out& out);
  void trim(uint64_t first, uint64_t end);
  void give_up(const Place& place);
  uint64_t place_of(uint64_t page, int64_t now, Out& out);
  bool take_held(uint64_t page);
  void free_held(uint64_t first, uint64_t end);
  uint64_t take_free(Out& out);
  bool pressed() const { return free_pages_ < log_pages_ + capacity_ / 8; }

  const uint64_t capacity_, log_pages_;
  std::map<uint64_t, uint64_t> held_;  // first page → end; there from the beginning, not rewritten
  std::unordered_map<uint64_t, Place> places_;
  bool fresh_ = true;  // free_ holds nothing yet
  std::deque<Run> free_;
  uint64_t free_pages_ = 0;
  std::vector<Run> dead_, replaced_;  // freed: wait for a pass; for the end of the epoch first
  uint64_t dead_pages_ = 0, replaced_pages_ = 0;
  int64_t passed_ms_ = 0, closed_ms_ = 0, wrote_ms_ = 0;
  bool begun_ = false, dirty_ = false;
  int64_t dirty_since_ms_ = 0;
  uint64_t dirty_pages_ = 0, written_ = 0;
  double waited_ = 0;
};

}  // namespace streamfs::classifier
