#include "fuse-fs/placement/confidence.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace streamfs::placement {
namespace {

constexpr double kNormal975 = 1.959964;  // quantile of the normal distribution

// Half of chi-squared's quantile at z for 2 · shape degrees of freedom.
double half_chi_squared(double shape, double z) {
  const double spread = 1 / (9 * shape);
  return shape * std::pow(std::max(0.0, 1 - spread + z * std::sqrt(spread)), 3);
}

}  // namespace

Limits poisson_limits(double count) {
  return {count > 0 ? half_chi_squared(count, -kNormal975) : 0,
          half_chi_squared(count + 1, kNormal975)};
}

Limits lifetime_limits(double exposure, double deaths) {
  SFS_ASSERT(deaths > 0);
  const Limits count = poisson_limits(deaths);
  return {exposure / count.high, exposure / count.low};
}

}  // namespace streamfs::placement
