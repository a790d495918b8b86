// Tags is a host's policy: a write goes to the pStream that the trace recorded, or to the default
// one if the device does not have it. See host_only.h for copies.
#pragma once

#include "lab/placement/policy.h"

namespace streamfs::lab {

class Tags final : public PlacementPolicy {
 public:
  explicit Tags(uint16_t streams) : streams_(streams) {}

  uint16_t classes() const override { return streams_; }
  ssd::FrontierId for_write(const PageWrite& write, uint64_t) override {
    return write.pstream < streams_ ? write.pstream : ssd::FrontierId{0};
  }
  ssd::FrontierId for_copy(ssd::Lpn, ssd::FrontierId source, uint64_t) override { return source; }

 private:
  uint16_t streams_;
};

}  // namespace streamfs::lab
