// Computes the 95 % confidence limits of a measured mean lifetime.
//
// The mean lifetime is exposure ÷ deaths, where exposure includes the living pages. If pages die at
// an even rate, deaths are a Poisson count, and the limits are exposure ÷ the limits of that count
// (F. Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28, 1936). They are
// approximated by E. B. Wilson and M. M. Hilferty's cube root of chi-squared (PNAS 17, 1931),
// within 1 % from 5 deaths on. Pages of one file die together and are fewer events than counted:
// true limits are wider.
// Thread safety: pure functions.
#pragma once

namespace streamfs::placement {

struct Limits {
  double low = 0, high = 0;
};

// Returns the limits of the mean of a Poisson count. `count` may be a sum of weights that are each
// at most 1.
Limits poisson_limits(double count);
// Returns the limits of the mean lifetime, in the unit of `exposure`. Requires: deaths > 0.
Limits lifetime_limits(double exposure, double deaths);

}  // namespace streamfs::placement
