// The features of a page write, as they are before the write is counted.
// Thread safety: values.
#pragma once

#include <cstdint>

namespace streamfs::learning {

// The features that the filesystem knows when it places a write.
struct PathView {
  uint64_t page = 0;  // on the device
  uint16_t vstream = 0;
  uint8_t expected = 0;                      // as in WriteView
  uint8_t length = 0, offset = 0, tail = 0;  // as in WriteView
  uint8_t age = 0;         // age class of the overwritten data (base/wire/model_table.h)
  uint8_t file_place = 0;  // of the request (file_place(), steps.h); 0: unknown

  // Returns whether both views give the same tokens.
  bool like(const PathView& other) const {
    return page >> kPageShift == other.page >> kPageShift && vstream == other.vstream &&
           expected == other.expected && length == other.length && offset == other.offset &&
           tail == other.tail && age == other.age && file_place == other.file_place;
  }
  static constexpr uint32_t kPageShift = 8;  // the finest place that tokens tell apart: 1 MiB
};

// The features that LifetimeModel knows.
struct WriteView {
  uint64_t page = 0;  // on the device
  uint16_t vstream = 0;
  // 1 + half_log2 of the lifetime that a life table has for the vStream and the page's shape; 0: it
  // has none.
  uint8_t expected = 0;
  // The request: half_log2 (steps.h) of pages, unless stated otherwise.
  uint8_t length = 0;
  uint8_t offset = 0;         // pages of the request before this one
  uint8_t tail = 0;           // pages of the request after this one
  uint8_t run = 0;            // pages that the run had before the request; 0: begins a run
  uint8_t overlap = 0;        // 1 + pages of the run's tail rewritten; 0: begins a run
  uint8_t overlaps_mean = 0;  // quarters of RunPlace::overlaps (runs.h): 0 to 4
  // The page's history (PageLife).
  uint8_t age = 0;  // 1 + half_log2 of the age since its last write; 0: never written
  uint8_t last = 0, before = 0, trim_length = 0;
  bool alive = false;
  // The two neighbours, likewise; the age is 0 unless the neighbour is alive.
  uint8_t left_age = 0, right_age = 0, left_last = 0, right_last = 0;
  // The regions around the page: 1 + the running mean of 2 · log2(lifetime + 1), rounded down, over
  // all deaths (mean_) or over deaths by trim (trimmed_); 0: none yet.
  uint8_t mean_64k = 0, mean_1m = 0, trimmed_1m = 0, trimmed_16m = 0;
};

}  // namespace streamfs::learning
