// Counts reads and writes by their size, in bytes.
// Thread safety: any thread (base/thread_histograms.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log_histogram.h"
#include "base/thread_histograms.h"

namespace streamfs {

class IoSizes {
 public:
  enum class Kind : uint8_t { kRead, kWrite };
  void add(Kind kind, uint64_t bytes) { histograms_.add(static_cast<size_t>(kind), bytes); }
  LogHistogram of(Kind kind) const { return histograms_.sum(static_cast<size_t>(kind)); }

 private:
  ThreadHistograms<2> histograms_;
};

}  // namespace streamfs
