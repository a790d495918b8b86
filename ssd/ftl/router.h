// Chooses the open block for a copy. StreamRouter is the device's own: copies go where GcMode says.
// Simulated policies have their own (lab/placement/policy.h).
//
// PageMap calls collected() before it moves the last pages of a block, and for_copy() for each page
// that it moves; `source` is the frontier of the page's block.
// Thread safety: none; the FTL's lock.
#pragma once

#include "ssd/geometry.h"

namespace streamfs::ssd {

// An open block's number: s for host writes of stream s, streams + s for copies.
using FrontierId = uint16_t;

class StreamRouter {
 public:
  explicit StreamRouter(const Geometry& geometry)
      : streams_(geometry.streams), mode_(geometry.gc_mode) {}

  FrontierId for_copy(Lpn /*page*/, FrontierId source, uint64_t /*clock*/) const {
    const auto stream = static_cast<FrontierId>(source % streams_);
    if (mode_ == GcMode::kSameStream) return stream;
    return mode_ == GcMode::kShared ? streams_ : static_cast<FrontierId>(streams_ + stream);
  }
  void collected(FrontierId /*frontier*/, uint64_t /*opened_at*/, uint64_t /*clock*/) const {}

 private:
  uint16_t streams_;
  GcMode mode_;
};

}  // namespace streamfs::ssd
