// Two classes: what the host writes, what garbage collection copies. What drives without streams
// do.
#pragma once

#include "emulator/policy/placement/policy.h"

namespace streamfs::emulator {

class SepGc final : public PlacementPolicy {
 public:
  uint16_t classes() const override { return 2; }
  FrontierId for_write(const PageWrite&, uint64_t) override { return 0; }
  FrontierId for_copy(Lpn, FrontierId, uint64_t) override { return 1; }
};

}  // namespace streamfs::emulator
