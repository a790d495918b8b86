#include "lab/workload/logs.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>

#include "base/assert.h"
#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"
#include "ssd/geometry.h"

namespace streamfs::lab {

Logs::Logs(const GeneratorOptions& options, std::span<const Job> jobs, Turn turn)
    : Generator(options), turn_(turn) {
  SFS_ASSERT(!jobs.empty());
  uint64_t shares = 0;
  for (const Job& job : jobs) shares += job.share;
  ssd::Lpn first = 0;
  SFS_ASSERT(shares > 0);
  uint64_t before = 0;
  for (const Job& job : jobs) {
    before += job.share;
    // Regions are whole requests, so that jobs are equally fast.
    const auto even =
        static_cast<ssd::Lpn>(before * pages_ / shares / kRequestPages * kRequestPages);
    const ssd::Lpn end = before == shares ? pages_ : std::max(even, first + kRequestPages);
    regions_.push_back({first, end - first, 0, job});
    first = end;
  }
}

std::optional<StreamFacts> Logs::facts() const {
  StreamFacts facts = all_pages();
  facts.footprint_pages = regions_.back().first + regions_.back().pages;
  facts.peak_live_pages = facts.footprint_pages;
  return facts;
}

void Logs::request() {
  if (turn_ == Turn::kRandom) next_ = random_.below(static_cast<uint32_t>(regions_.size()));
  Region& region = regions_[next_];
  next_ = (next_ + 1) % regions_.size();
  const uint32_t pages = std::min(kRequestPages, region.pages - region.cursor);
  write_run(region.first + region.cursor, pages, region.job.vstream, region.job.pstream);
  region.cursor = (region.cursor + pages) % region.pages;
}

void Logs::restart() {
  next_ = 0;
  for (Region& region : regions_) region.cursor = 0;
}

Tag Logs::resident_tag(ssd::Lpn page) const {
  const auto after = std::ranges::upper_bound(regions_, page, {}, &Region::first);
  if (after == regions_.begin()) return {};
  return {std::prev(after)->job.vstream, std::prev(after)->job.pstream};
}

}  // namespace streamfs::lab
