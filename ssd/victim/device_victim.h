// The victim policy of a device whose geometry names it: greedy or cost-benefit.
// Thread safety: none; the FTL's lock. After a crash: rebuilt from the block states. Ages start
// anew then, so that cost-benefit ranks blocks by their valid pages at first.
#pragma once

#include <variant>

#include "ssd/geometry.h"
#include "ssd/victim/cost_benefit.h"
#include "ssd/victim/greedy.h"
#include "ssd/victim/view.h"

namespace streamfs::ssd {

class DeviceVictim {
 public:
  explicit DeviceVictim(const Geometry& geometry)
      : policy_(geometry.victim == VictimKind::kCostBenefit ? Policy(CostBenefit(geometry))
                                                            : Policy(Greedy(geometry))) {}

  void add(BlockIndex block, const BlockView& view) {
    std::visit([&](auto& policy) { policy.add(block, view); }, policy_);
  }
  void remove(BlockIndex block, uint32_t valid) {
    std::visit([&](auto& policy) { policy.remove(block, valid); }, policy_);
  }
  void moved(BlockIndex block, uint32_t from, uint32_t to) {
    std::visit([&](auto& policy) { policy.moved(block, from, to); }, policy_);
  }
  BlockIndex choose(uint64_t clock) {
    return std::visit([&](auto& policy) { return policy.choose(clock); }, policy_);
  }

 private:
  using Policy = std::variant<Greedy, CostBenefit>;
  Policy policy_;
};

}  // namespace streamfs::ssd
