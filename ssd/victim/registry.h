// The victim policies by name. with_victim() turns a name into a type, because a policy is a
// template argument of PageMap: the hot path then has no virtual calls.
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

// Errors: EINVAL for 0 choices or an unknown name; the message lists the known names.
Result<void> check_victim(const std::string& name, const VictimOptions& options);

// Makes the policy `name` for this device and returns run(victim). Requires: the name is known.
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
