// The data floor's memory of inodes: it forgets nothing that is still needed, and keeps little
// else.
#include "fuse-fs/data/inode_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.h"

namespace streamfs::data {
namespace {

constexpr uint64_t kMany = 300'000, kKept = 64 * 1024;

size_t alive_after_many(InodeStates& states, uint64_t epoch) {
  std::vector<std::weak_ptr<InodeState>> seen;
  for (uint64_t i = 0; i < kMany; ++i) {
    const auto state = states.get(InodeId{1000 + i});
    state->wrote_in(epoch);
    seen.emplace_back(state);
  }
  return static_cast<size_t>(
      std::ranges::count_if(seen, [](const auto& each) { return !each.expired(); }));
}

TEST(InodeStates, ManyThatNothingNeedsAreDropped) {
  InodeStates states;
  states.flushed(3);
  EXPECT_LE(alive_after_many(states, 3), kKept);
}

TEST(InodeStates, WhatIsNotFlushedStays) {
  InodeStates states;
  states.flushed(3);
  EXPECT_EQ(alive_after_many(states, 4), kMany);
}

TEST(InodeStates, WhatIsInUseOrHintedStays) {
  InodeStates states;
  const auto used = states.get(InodeId{1});
  states.get(InodeId{2})->inferred = 7;
  alive_after_many(states, 0);
  EXPECT_EQ(states.get(InodeId{1}), used);
  EXPECT_EQ(states.get(InodeId{2})->inferred, 7);
}

}  // namespace
}  // namespace streamfs::data
