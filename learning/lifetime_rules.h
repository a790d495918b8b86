// When a measured mean lifetime counts, and how it forgets: of the filesystem's lifetimes and of
// the emulated vStream FTL's alike. Thread safety: constants and pure functions.
#pragma once

namespace streamfs::learning {

inline constexpr double kLifetimeDecay = 0.7;  // of a window's weight when the next one ends
inline constexpr double kHistoryDeaths = 256;  // fewer are not forgotten
inline constexpr double kDeathsMin = 32;       // fewer say nothing yet

// A vStream that dies slowly keeps its history until there is enough of it to forget some.
constexpr double kept_of_lifetime(double deaths) {
  return deaths > kHistoryDeaths ? kLifetimeDecay : 1.0;
}

}  // namespace streamfs::learning
