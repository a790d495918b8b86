// The features of each page write at its arrival (learning/write_view.h), as numbers. The rivals of
// the logistic model learn from them.
// Thread safety: none. After a crash: memory only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/wire/telemetry.h"
#include "learning/lifetime_model.h"

namespace streamfs::lab::python {

// The columns. "mib" is the page's address in MiB. The life table's expectation is left out.
inline constexpr std::array kViewFields = {
    "mib",       "vstream",   "length",     "offset",   "tail",        "run",        "overlap",
    "overlaps",  "age",       "last",       "before",   "trim_length", "alive",      "left_age",
    "right_age", "left_last", "right_last", "mean_64k", "mean_1m",     "trimmed_1m", "trimmed_16m",
};
using ViewRow = std::array<float, kViewFields.size()>;

class Views {
 public:
  Views(uint64_t device_pages, uint64_t live_pages) : model_(device_pages, live_pages) {}

  // Returns a row for each page written, in order. Records that fail believable() are left out.
  std::vector<ViewRow> feed(std::span<const wire::TelemetryRecord> records);

 private:
  learning::LifetimeModel model_;
};

}  // namespace streamfs::lab::python
