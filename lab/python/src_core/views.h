// What was known of each page written at the moment it came (learning/write_view.h), as numbers:
// what rivals of the logistic model learn from. Thread safety: none. Crash: nothing persistent.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/wire/telemetry.h"
#include "learning/lifetime_model.h"

namespace streamfs::lab::python {

// By column; the page's address in MiB. What a life table expects is not among them.
inline constexpr std::array kViewFields = {
    "mib",       "vstream",   "length",     "offset",   "tail",        "run",        "overlap",
    "overlaps",  "age",       "last",       "before",   "trim_length", "alive",      "left_age",
    "right_age", "left_last", "right_last", "mean_64k", "mean_1m",     "trimmed_1m", "trimmed_16m",
};
using ViewRow = std::array<float, kViewFields.size()>;

class Views {
 public:
  Views(uint64_t device_pages, uint64_t live_pages) : model_(device_pages, live_pages) {}

  // A row for each page written, in order. Unbelievable records are left out.
  std::vector<ViewRow> feed(std::span<const wire::TelemetryRecord> records);

 private:
  learning::LifetimeModel model_;
};

}  // namespace streamfs::lab::python
