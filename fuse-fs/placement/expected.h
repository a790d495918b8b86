// Computes expected lifetimes: how long a vStream's data should live according to a profile's
// `life`, to RWH_WRITE_LIFE_* or to a name like "life-64MiB" (libstream.h). An expectation only
// decides where data goes until a lifetime is measured.
// Thread safety: pure functions. After a crash: names and rules give the same again.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace streamfs::placement {

inline constexpr uint32_t kLifeMost = 5;  // the largest RWH_WRITE_LIFE_*
// Returns the lifetime that RWH_WRITE_LIFE_* stands for, in pages written to the device: short is
// 1/64 of the capacity, medium 1/8, long all of it, extreme eight times as much. Returns nothing
// for "none", "not set" and unknown values.
std::optional<double> pages_of_life(uint32_t life, uint64_t capacity_blocks);

// Returns the name of the hint's vStream ("rwh-short" and so on); "" if it stands for no lifetime.
std::string_view name_of_life(uint32_t life);

// Returns whether this is a name that name_of_life() returns.
bool is_name_of_life(std::string_view name);

// Returns the lifetime in pages that a vStream's name states: "rwh-short", "life-64MiB",
// "life-256s". Seconds need `ms_per_page`, the time the device takes per page; 0: not known.
std::optional<double> pages_of_name(std::string_view name, uint64_t capacity_blocks,
                                    double ms_per_page);
// Returns whether pages_of_name() of this name depends on `ms_per_page`.
bool says_seconds(std::string_view name);

}  // namespace streamfs::placement
