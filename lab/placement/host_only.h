// Runs a policy in the host, as NVMe Streams and FDP allow: it tags host writes and sees trims, but
// neither the device's copies nor its collections. Copies go where the device's GcMode says.
#pragma once

#include <memory>
#include <utility>

#include "lab/placement/policy.h"

namespace streamfs::lab {

class HostOnly final : public PlacementPolicy {
 public:
  HostOnly(std::unique_ptr<PlacementPolicy> policy, ssd::GcMode mode)
      : policy_(std::move(policy)), streams_(policy_->host_classes()), mode_(mode) {}

  uint16_t host_classes() const override { return streams_; }
  uint16_t classes() const override {
    if (mode_ == ssd::GcMode::kSameStream) return streams_;
    return static_cast<uint16_t>(mode_ == ssd::GcMode::kShared ? streams_ + 1 : 2 * streams_);
  }
  ssd::FrontierId for_write(const PageWrite& write, uint64_t clock) override {
    return policy_->for_write(write, clock);
  }
  ssd::FrontierId for_copy(ssd::Lpn, ssd::FrontierId source, uint64_t) override {
    if (mode_ == ssd::GcMode::kSameStream) return source;
    if (mode_ == ssd::GcMode::kShared) return streams_;
    return static_cast<ssd::FrontierId>(streams_ + source % streams_);
  }
  void trimmed(ssd::Lpn page, uint64_t clock) override { policy_->trimmed(page, clock); }

 private:
  std::unique_ptr<PlacementPolicy> policy_;
  uint16_t streams_;
  ssd::GcMode mode_;
};

}  // namespace streamfs::lab
