// A policy as a host would run it: it tags host writes and sees trims, but neither the device's
// copies nor its collections; copies go where the device's GcMode says. What NVMe Streams and FDP
// allow.
#pragma once

#include <memory>
#include <utility>

#include "emulator/policy/placement/policy.h"

namespace streamfs::emulator {

class HostOnly final : public PlacementPolicy {
 public:
  HostOnly(std::unique_ptr<PlacementPolicy> policy, GcMode mode)
      : policy_(std::move(policy)), streams_(policy_->host_classes()), mode_(mode) {}

  uint16_t host_classes() const override { return streams_; }
  uint16_t classes() const override {
    if (mode_ == GcMode::kSameStream) return streams_;
    return static_cast<uint16_t>(mode_ == GcMode::kShared ? streams_ + 1 : 2 * streams_);
  }
  FrontierId for_write(const PageWrite& write, uint64_t clock) override {
    return policy_->for_write(write, clock);
  }
  FrontierId for_copy(Lpn, FrontierId source, uint64_t) override {
    if (mode_ == GcMode::kSameStream) return source;
    if (mode_ == GcMode::kShared) return streams_;
    return static_cast<FrontierId>(streams_ + source % streams_);
  }
  void trimmed(Lpn page, uint64_t clock) override { policy_->trimmed(page, clock); }

 private:
  std::unique_ptr<PlacementPolicy> policy_;
  uint16_t streams_;
  GcMode mode_;
};

}  // namespace streamfs::emulator
