// Between which limits a measured mean lifetime lies, with 95 % confidence.
//
// Deaths of what lives on at an even rate are a Poisson count, and the mean lifetime is exposure ÷
// deaths, the living included: its limits are exposure ÷ the limits of that count (F. Garwood,
// "Fiducial limits for the Poisson distribution", Biometrika 28, 1936), here by E. B. Wilson and
// M. M. Hilferty's cube root of chi-squared (PNAS 17, 1931), within 1 % from 5 deaths on.
// Pages that die together (of one file) are fewer events than counted: true limits are wider.
// Thread safety: pure functions.
#pragma once

namespace streamfs::placement {

struct Limits {
  double low = 0, high = 0;
};

// Of the mean behind a count; `count` may be a sum of weights of at most 1 each.
Limits poisson_limits(double count);
// Of the mean lifetime, in the unit of `exposure`; deaths > 0.
Limits lifetime_limits(double exposure, double deaths);

}  // namespace streamfs::placement
