#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "emulator/geometry.h"
#include "emulator/policy/placement/nosep.h"
#include "emulator/policy/placement/oracle.h"
#include "emulator/policy/placement/policy.h"
#include "emulator/policy/placement/sepbit.h"
#include "emulator/policy/placement/sepgc.h"
#include "emulator/policy/placement/tags.h"
#include "emulator/workload/facts.h"

namespace streamfs::emulator {

const std::vector<std::string>& placement_names() {
  static const std::vector<std::string> names = {"nosep", "sepgc",  "sepbit",
                                                 "tags",  "oracle", "oracle-host"};
  return names;
}

bool needs_future(const std::string& name) {
  return name == "oracle" || name == "oracle-host";
}

Result<std::unique_ptr<PlacementPolicy>> make_placement(const std::string& name,
                                                        const PolicyOptions& options,
                                                        const WorkloadFacts& facts) {
  using Policy = std::unique_ptr<PlacementPolicy>;
  if (options.streams == 0 || options.streams > kMaxStreams / 2)
    return Error{EINVAL, fmt::format("{} streams: 1 to {}", options.streams, kMaxStreams / 2)};
  if (name == "nosep") return Policy(std::make_unique<NoSep>());
  if (name == "sepgc") return Policy(std::make_unique<SepGc>());
  if (name == "sepbit") return Policy(std::make_unique<SepBit>(facts));
  if (name == "tags") return Policy(std::make_unique<Tags>(options));
  if (name == "oracle" || name == "oracle-host") {
    PolicyOptions oracle = options;
    oracle.host_only = options.host_only || name == "oracle-host";
    return Policy(std::make_unique<Oracle>(oracle, facts));
  }
  return Error{EINVAL, fmt::format("no placement '{}'; there are {}", name,
                                   fmt::join(placement_names(), ", "))};
}

}  // namespace streamfs::emulator
