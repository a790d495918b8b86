// Helpers that the tests of the intent log share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/unit/data/rig.h"

namespace streamfs::data::intent_test {

inline std::vector<std::byte> blocks(uint64_t count, int value) {
  return Rig::filled(count * kBlockSize, value);
}

inline Rig::Options forgetful() {
  Rig::Options options = Rig::with_intent_log();
  options.forgetful_meta = true;
  return options;
}

}  // namespace streamfs::data::intent_test
