// A page write as the model sees it: what was known at the moment it came.
#pragma once

#include <cstdint>

namespace streamfs::learning {

// Lengths, ages and lifetimes are half_log2 (steps.h) plus one, 0 standing for "not known".
struct WriteView {
  uint64_t page = 0;  // on the device
  uint16_t vstream = 0;
  uint8_t expected = 0;  // of the vStream and the page's shape, by a life table
  // Of the request.
  uint8_t length = 0;
  uint8_t offset = 0;         // pages before this one
  uint8_t tail = 0;           // pages after this one
  uint8_t run = 0;            // of the run that it continues
  uint8_t overlap = 0;        // 1 + pages of the run's tail rewritten; 0: begins a run
  uint8_t overlaps_mean = 0;  // in quarters
  // Of the page.
  uint8_t age = 0;  // since its last write
  uint8_t last = 0, before = 0, trim_length = 0;
  bool alive = false;
  // Of what lies around it.
  uint8_t left_age = 0, right_age = 0, left_last = 0, right_last = 0;
  uint8_t mean_64k = 0, mean_1m = 0, trimmed_1m = 0, trimmed_16m = 0;
};

}  // namespace streamfs::learning
