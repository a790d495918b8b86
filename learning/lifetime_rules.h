// Rules for when a measured mean lifetime counts and how it decays. The filesystem and the emulated
// vStream FTL share them. Thread safety: constants and pure functions.
#pragma once

namespace streamfs::learning {

inline constexpr double kLifetimeDecay = 0.7;  // factor on a window's weight when the next one ends
inline constexpr double kHistoryDeaths = 256;  // a history of at most so many does not decay
inline constexpr double kDeathsMin = 32;       // with fewer, no lifetime is known

// Returns the factor on a vStream's history when a window ends. A vStream whose pages die slowly
// keeps its history until it has enough deaths.
constexpr double kept_of_lifetime(double deaths) {
  return deaths > kHistoryDeaths ? kLifetimeDecay : 1.0;
}

}  // namespace streamfs::learning
