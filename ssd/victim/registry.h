// The victim policies by name. They are template arguments of PageMap, so that the choice costs
// nothing on the hot path: with_victim turns a name into a type.
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "ssd/geometry.h"
#include "ssd/victim/cost_benefit.h"
#include "ssd/victim/d_choices.h"
#include "ssd/victim/fifo.h"
#include "ssd/victim/greedy.h"
#include "ssd/victim/spare_split.h"
#include "ssd/victim/view.h"
#include "ssd/victim/wear_aware.h"

namespace streamfs::ssd {

template <typename... Victims>
struct VictimTypes {};
using AllVictims =
    VictimTypes<Greedy, Fifo, CostBenefit, CostBenefitAge, DChoices, WearAware, SpareSplit>;

const std::vector<std::string>& victim_names();

// Errors: EINVAL; an unknown name lists the known ones.
Result<void> check_victim(const std::string& name, const VictimOptions& options);

// What run(victim) returns for the policy of this name, made for this device. The name is known.
template <typename Returned, typename Run, typename... Victims>
Returned with_victim(const std::string& name, const Geometry& geometry,
                     const VictimOptions& options, Run run, VictimTypes<Victims...> /*all*/) {
  std::optional<Returned> returned;
  const auto try_one = [&]<typename Victim>(std::type_identity<Victim>) {
    if (name != Victim::kName) return false;
    Victim victim(geometry, options);
    returned.emplace(run(victim));
    return true;
  };
  SFS_ASSERT((try_one(std::type_identity<Victims>{}) || ...));
  return *std::move(returned);  // NOLINT(bugprone-unchecked-optional-access): just asserted
}

}  // namespace streamfs::ssd
