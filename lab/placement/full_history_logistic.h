// FullHistoryLogistic, this project's own, places by the online hashed logistic model with each
// page's history (learning/lifetime_model.h). A mount keeps no such history: its logistic model is
// learning/path_model.h. Copies stay in their class. Memory: that of the model, and 4 bytes a page.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/placement/policy.h"
#include "learning/classes.h"
#include "learning/lifetime_model.h"

namespace streamfs::lab {

class FullHistoryLogistic final : public PlacementPolicy {
 public:
  FullHistoryLogistic(uint16_t streams, const WorkloadFacts& facts)
      : model_(uint64_t{1} << 32, facts.peak_live_pages),
        classes_(streams, model_.landmarks()),
        address_(facts.footprint_pages) {}

  uint16_t classes() const override { return static_cast<uint16_t>(classes_.count()); }
  ssd::FrontierId for_write(const PageWrite& write, uint64_t clock) override;
  ssd::FrontierId for_copy(ssd::Lpn, ssd::FrontierId source, uint64_t) override { return source; }
  void trimmed(ssd::Lpn page, uint64_t clock) override;

 private:
  void end_trim();

  learning::LifetimeModel model_;
  learning::Classes classes_;
  std::vector<uint32_t> address_;  // by page number
  // The replay trims page by page, but the model learns from the length of a trim. Trims of
  // neighbouring pages, one after the other, are therefore joined; the next write ends the last.
  uint32_t trim_first_ = 0, trim_pages_ = 0;
};

}  // namespace streamfs::lab
