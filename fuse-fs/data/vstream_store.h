// Stores placement's vStreams in META's vStream table. Thread safety: the engine's. After a crash:
// a slot has the old value or the new one.
#pragma once

#include <cstdint>
#include <vector>

#include "fuse-fs/meta/engine.h"
#include "fuse-fs/placement/placement.h"

namespace streamfs::data {

class VStreamStore final : public placement::Store {
 public:
  explicit VStreamStore(meta::Engine& engine) : engine_(engine) {}
  std::vector<placement::SavedVStream> load() override;
  Result<void> store(uint32_t slot, const placement::SavedVStream& value) override;
  uint32_t capacity() const override { return engine_.vstream_capacity(); }

 private:
  meta::Engine& engine_;
};

}  // namespace streamfs::data
