// The pStream that the trace recorded, as a device with streams would take it; copies where the
// device's GcMode says. Streams that the device does not have are the default one.
#pragma once

#include "emulator/policy/placement/policy.h"

namespace streamfs::emulator {

class Tags final : public PlacementPolicy {
 public:
  explicit Tags(const PolicyOptions& options)
      : streams_(static_cast<uint16_t>(options.streams)), mode_(options.gc_mode) {}

  uint16_t classes() const override {
    if (mode_ == GcMode::kSameStream) return streams_;
    return static_cast<uint16_t>(mode_ == GcMode::kShared ? streams_ + 1 : 2 * streams_);
  }
  FrontierId for_write(const PageWrite& write, uint64_t) override {
    return write.pstream < streams_ ? write.pstream : FrontierId{0};
  }
  FrontierId for_copy(Lpn, FrontierId source, uint64_t) override {
    if (mode_ == GcMode::kSameStream) return source;
    if (mode_ == GcMode::kShared) return streams_;
    return static_cast<FrontierId>(streams_ + source % streams_);
  }

 private:
  uint16_t streams_;
  GcMode mode_;
};

}  // namespace streamfs::emulator
