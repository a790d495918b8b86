// SepGC has a class for host writes and a class for copies, as a drive without streams does.
#pragma once

#include "lab/placement/policy.h"

namespace streamfs::lab {

class SepGc final : public PlacementPolicy {
 public:
  uint16_t classes() const override { return 2; }
  ssd::FrontierId for_write(const PageWrite&, uint64_t) override { return 0; }
  ssd::FrontierId for_copy(ssd::Lpn, ssd::FrontierId, uint64_t) override { return 1; }
};

}  // namespace streamfs::lab
