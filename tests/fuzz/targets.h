// The fuzz targets as functions, so that the fuzzers, the seeds and the coverage run call the
// same thing. Each stops the process on a broken promise, and otherwise leaves nothing behind.
//
// Thread safety: none.
#pragma once

#include <cstdint>

#include "tests/fuzz/input.h"

namespace streamfs::fuzz {

// Bits of a target's flags; the images are image(flags % kImages).
inline constexpr uint8_t kFixChecksums = 0x80;
inline constexpr uint8_t kDamageTwice = 0x40;  // also between the operations and the next mount
inline constexpr uint8_t kReadTwice = 0x20;    // everything is read by the next mount as well

// A damaged META: mounted, walked, read, operated on, unmounted, mounted again.
void run_image(const Input& input);
// A damaged META: checked; repaired; the second repair finds nothing to do; what is wholly repaired
// mounts.
void run_fsck(const Input& input);
// Rings full of records made up: recovered, recovered again, checked, mounted.
void run_journal(const Input& input);
// A damaged metadata log on DATA: META rebuilt from it, checked, mounted.
void run_log(const Input& input);
// A damaged placement model (learning/placement_model.h): read; if it is adopted, it places pages
// on pStreams that are there. Flag 1: a logistic model serves; flag 2: the device has more pStreams
// than the model.
void run_model(const Input& input);

}  // namespace streamfs::fuzz
