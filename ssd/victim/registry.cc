#include "ssd/victim/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "base/result.h"
#include "ssd/victim/view.h"

namespace streamfs::ssd {
namespace {

template <typename... Victims>
std::vector<std::string> names_of(VictimTypes<Victims...> /*all*/) {
  return {Victims::kName...};
}

}  // namespace

const std::vector<std::string>& victim_names() {
  static const std::vector<std::string> names = names_of(AllVictims{});
  return names;
}

Result<void> check_victim(const std::string& name, const VictimOptions& options) {
  if (std::ranges::find(victim_names(), name) == victim_names().end())
    return Error{EINVAL, fmt::format("no victim policy '{}'; there are {}", name,
                                     fmt::join(victim_names(), ", "))};
  if (options.choices == 0) return Error{EINVAL, "d-choices of 0 blocks: at least 1"};
  return {};
}

}  // namespace streamfs::ssd
