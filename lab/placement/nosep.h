// NoSep puts every page into one class.
#pragma once

#include "lab/placement/policy.h"

namespace streamfs::lab {

class NoSep final : public PlacementPolicy {
 public:
  uint16_t classes() const override { return 1; }
  ssd::FrontierId for_write(const PageWrite&, uint64_t) override { return 0; }
  ssd::FrontierId for_copy(ssd::Lpn, ssd::FrontierId, uint64_t) override { return 0; }
};

}  // namespace streamfs::lab
