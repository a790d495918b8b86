// Host writes go by the pStream that the trace recorded, copies by what pages of that pStream and
// age have left: a host's tags in a device that looks again at what it copies (lifetime_table.h).
#pragma once

#include <cstdint>

#include "emulator/policy/placement/lifetime_table.h"
#include "emulator/policy/placement/policy.h"
#include "emulator/policy/placement/tags.h"

namespace streamfs::emulator {

class AgedTags final : public PlacementPolicy {
 public:
  AgedTags(uint16_t streams, uint32_t pages) : tags_(streams), lives_(streams, pages) {}

  uint16_t host_classes() const override { return tags_.classes(); }
  uint16_t classes() const override { return lives_.classes(); }
  FrontierId for_write(const PageWrite& write, uint64_t clock) override {
    const FrontierId tag = tags_.for_write(write, clock);
    PageWrite kind = write;
    kind.context = tag + 1U;
    lives_.for_write(kind, clock);
    return tag;
  }
  FrontierId for_copy(Lpn page, FrontierId source, uint64_t clock) override {
    return lives_.for_copy(page, source, clock);
  }
  void trimmed(Lpn page, uint64_t clock) override { lives_.trimmed(page, clock); }

 private:
  Tags tags_;
  LifetimeTable lives_;
};

}  // namespace streamfs::emulator
