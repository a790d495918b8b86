// The requests that streamfs would send of files that were recorded on another file system: a
// file's new data go to free blocks, overwrites lie where the old data lay, and freed blocks are
// trimmed when streamfs trims. Until then they are live to the SSD, although the other file system
// trimmed them or used them again at once.
//
// Times are the filesystem's (fuse-fs/data/epoch.h, maintenance.h, trim_queue.h): data that no
// epoch has committed wait for the next pass, others for the end of their epoch first. Thread
// safety: none. Memory: some 60 bytes a page that was written.
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
  // `log_pages` of the device are no file's. Throws std::invalid_argument for a device without
  // room.
  OwnPlaces(uint64_t capacity_pages, uint64_t log_pages);

  // Files lie there from the beginning: before the first take(). Pages beyond the device are left
  // out.
  void hold(uint64_t first, uint64_t pages);
  // Requests in order, with times; what is not believable is left out. The results say trim or not,
  // but neither age nor clock (page_trace.h).
  std::vector<wire::TelemetryRecord> take(std::span<const wire::TelemetryRecord> records);
  // Pages that were freed and not yet trimmed, in the mean over pages written.
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
  std::map<uint64_t, uint64_t> held_;  // first page → end, where no one has written since
  std::unordered_map<uint64_t, Place> places_;
  bool fresh_ = true;  // free_ holds nothing yet
  std::deque<Run> free_;
  uint64_t free_pages_ = 0;
  std::vector<Run> dead_, replaced_;  // wait for a pass; for the end of the epoch first
  uint64_t dead_pages_ = 0, replaced_pages_ = 0;
  int64_t passed_ms_ = 0, closed_ms_ = 0, wrote_ms_ = 0;
  bool begun_ = false, dirty_ = false;
  int64_t dirty_since_ms_ = 0;
  uint64_t dirty_pages_ = 0, written_ = 0;
  double waited_ = 0;
};

}  // namespace streamfs::classifier
