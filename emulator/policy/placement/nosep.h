// One class for everything.
#pragma once

#include "emulator/policy/placement/policy.h"

namespace streamfs::emulator {

class NoSep final : public PlacementPolicy {
 public:
  uint16_t classes() const override { return 1; }
  FrontierId for_write(const PageWrite&, uint64_t) override { return 0; }
  FrontierId for_copy(Lpn, FrontierId, uint64_t) override { return 0; }
};

}  // namespace streamfs::emulator
