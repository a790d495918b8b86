// A small filesystem that a test fills, for tests of preallocation and of full disks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {

using Content = std::vector<std::byte>;

inline uint64_t long_or(uint64_t quick, uint64_t all) {
  return std::getenv("STREAMFS_LONG") != nullptr ? all : quick;
}

inline int error_of(const Result<void>& done) {
  return done.ok() ? 0 : done.error().code;
}

inline Content blocks(uint64_t count, int value) {
  return Rig::filled(count * kBlockSize, value);
}

inline bool all_are(const Content& bytes, int value) {
  return std::ranges::all_of(bytes, [value](std::byte b) { return b == std::byte(value); });
}

inline uint64_t free_blocks(Rig& rig) {
  return rig.fs().space().free_blocks;
}

// Files of 64 blocks, then of one, until nothing is left.
inline void fill(Rig& rig, const std::string& prefix) {
  int number = 0;
  for (const uint64_t count : {64U, 1U}) {
    for (bool room = true; room;) {
      const InodeId id = rig.create(prefix + std::to_string(number++));
      const Result<void> done = rig.write(id, 0, blocks(count, 'x'));
      room = done.ok();
      if (!room) {
        ASSERT_EQ(done.error().code, ENOSPC);
      }
      if (number % 16 == 0) (void)rig.fs().sync();
    }
  }
  ASSERT_TRUE(rig.fs().sync().ok());
}

// Nothing that a device's or META's trim does hides what a block's owner before left in it.
inline Rig::Options small(bool log) {
  Rig::Options options;
  options.blocks = 2048;
  options.meta_bytes = 4 << 20;
  options.mount.discard = false;
  if (log) {
    options.meta_log = true;
    options.meta_class = pmem::MetaClass::kSynced;
    options.blocks = 6144;
  }
  return options;
}

}  // namespace streamfs::data
