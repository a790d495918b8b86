// A Store in memory, and a clock that a test moves.
#pragma once

#include <vector>

#include "base/clock.h"
#include "fuse-fs/placement/placement.h"

namespace streamfs::placement {

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(uint32_t capacity = 65536) : slots_(capacity) {}
  std::vector<SavedVStream> load() override { return slots_; }
  Result<void> store(uint32_t slot, const SavedVStream& value) override {
    ++stores;
    slots_.at(slot) = value;
    return {};
  }
  uint32_t capacity() const override { return static_cast<uint32_t>(slots_.size()); }
  uint64_t stores = 0;

 private:
  std::vector<SavedVStream> slots_;
};

class ManualClock final : public Clock {
 public:
  Timestamp now() override { return {static_cast<int64_t>(ms / 1000), 0}; }
  uint64_t monotonic_ms() override { return ms; }
  uint64_t ms = 1000;
};

}  // namespace streamfs::placement
