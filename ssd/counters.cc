#include "ssd/counters.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace streamfs::ssd {

Counters difference(const Counters& now, const Counters& before) {
  using Words = std::array<uint64_t, sizeof(Counters) / sizeof(uint64_t)>;
  auto delta = std::bit_cast<Words>(now);
  const auto baseline = std::bit_cast<Words>(before);
  for (size_t i = 0; i < delta.size(); ++i) delta[i] -= baseline[i];
  return std::bit_cast<Counters>(delta);
}

Merges difference(const Merges& now, const Merges& before) {
  return {now.switched - before.switched, now.partial - before.partial, now.full - before.full};
}

}  // namespace streamfs::ssd
