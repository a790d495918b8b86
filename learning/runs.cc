#include "learning/runs.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/mix.h"

namespace streamfs::learning {

Runs::Set& Runs::set_of(uint64_t end) {
  return sets_[mix64(end) % kSets];
}

// The run that the request continues, taken out; one without an end if there is none.
Runs::Run Runs::take(uint64_t page, uint64_t pages, uint8_t& overlap) {
  for (uint64_t back = 0; back <= std::min(kOverlapMax, pages); ++back) {
    for (Run& run : set_of(page + back)) {
      if (run.end != page + back || run.end == 0) continue;
      overlap = static_cast<uint8_t>(back);
      return std::exchange(run, {});
    }
  }
  return {};
}

RunPlace Runs::place(uint64_t page, uint64_t pages, uint64_t clock) {
  RunPlace found;
  Run run = take(page, pages, found.overlap);
  found.continues = run.end != 0;
  found.before = run.length;
  if (found.continues) run.overlaps = 0.8F * run.overlaps + (found.overlap > 0 ? 0.2F : 0.0F);
  found.overlaps = run.overlaps;
  run.end = page + pages;
  run.length += pages - found.overlap;
  run.used = clock;
  *std::ranges::min_element(set_of(run.end), {}, &Run::used) = run;
  return found;
}

}  // namespace streamfs::learning
