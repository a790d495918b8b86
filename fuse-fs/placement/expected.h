// How long a vStream's data is expected to live, before any of it has died: what a profile's `life`
// says, what RWH_WRITE_LIFE_* means, what a name like "life-64MiB" says (libstream.h). Such words
// decide where the first data goes and nothing else: a lifetime that was measured replaces them.
// Thread safety: pure functions. Crash: nothing is kept, names and rules say it again.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace streamfs::placement {

// RWH_WRITE_LIFE_* in pages written to a device of so many: short is a 64th of it, medium an
// eighth, long all of it, extreme eight times that. "None" and "not set" say nothing.
inline constexpr uint32_t kLifeMost = 5;
std::optional<double> pages_of_life(uint32_t life, uint64_t capacity_blocks);

// "rwh-short" and the like, the vStream of such a hint; nothing where it says nothing.
std::string_view name_of_life(uint32_t life);

bool is_name_of_life(std::string_view name);

// Of a vStream's name: "rwh-short", "life-64MiB", "life-256s". `ms_per_page` 0: not known.
std::optional<double> pages_of_name(std::string_view name, uint64_t capacity_blocks,
                                    double ms_per_page);
// Whether it is one of those whose pages depend on `ms_per_page`.
bool says_seconds(std::string_view name);

}  // namespace streamfs::placement
