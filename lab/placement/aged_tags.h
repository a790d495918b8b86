// AgedTags is a host's tags in a device that places copies anew (lifetime_table.h). A host write
// goes to the pStream that the trace recorded. A copy goes by the time that pages of that pStream
// and age have left to live.
#pragma once

#include <cstdint>

#include "lab/placement/lifetime_table.h"
#include "lab/placement/policy.h"
#include "lab/placement/tags.h"

namespace streamfs::lab {

class AgedTags final : public PlacementPolicy {
 public:
  AgedTags(uint16_t streams, uint32_t pages) : tags_(streams), lives_(streams, pages) {}

  uint16_t host_classes() const override { return tags_.classes(); }
  uint16_t classes() const override { return lives_.classes(); }
  ssd::FrontierId for_write(const PageWrite& write, uint64_t clock) override {
    const ssd::FrontierId tag = tags_.for_write(write, clock);
    PageWrite kind = write;
    kind.context = tag + 1U;
    lives_.for_write(kind, clock);
    return tag;
  }
  ssd::FrontierId for_copy(ssd::Lpn page, ssd::FrontierId source, uint64_t clock) override {
    return lives_.for_copy(page, source, clock);
  }
  void trimmed(ssd::Lpn page, uint64_t clock) override { lives_.trimmed(page, clock); }

 private:
  Tags tags_;
  LifetimeTable lives_;
};

}  // namespace streamfs::lab
