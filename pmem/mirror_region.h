// One region kept twice: every store, flush, fence and sync goes to both copies, loads are from the
// first. Losing either leaves the other with everything that was promised.
//
// One fence() is one for the caller, and where both copies are the processor's memory it is one
// instruction: the lines of both were flushed before it. The META class is that of the copy that
// keeps less, because whoever waits for durability is promised it of either copy alone.
//
// Thread safety: as Region. What a crash leaves: of what was not fenced, each copy keeps its own
// choice. Whoever recovers finds out what one holds and the other does not (copy(), equalise());
// free space that nobody read may stay different (alike()).
#pragma once

#include <array>
#include <memory>

#include "base/result.h"
#include "pmem/region.h"

namespace streamfs::pmem {

class MirrorRegion final : public Region {
 public:
  // As large as the smaller.
  MirrorRegion(std::unique_ptr<Region> first, std::unique_ptr<Region> second);

  MetaClass meta_class() const override;
  void store(uint64_t offset, std::span<const uint64_t> words) override;
  void store_masked(uint64_t offset, uint64_t mask, uint64_t value) override;
  size_t copies() const override { return copies_.size(); }
  Region& copy(size_t index) override { return *copies_.at(index); }
  const Region& copy(size_t index) const override { return *copies_.at(index); }
  bool equalise(size_t from, uint64_t offset, uint64_t length) const override;
  Result<uint64_t> medium_bytes() override;  // of the smaller
  bool extensible() const override;
  Counters counters() const override;

 protected:
  void on_store(uint64_t, uint64_t) override {}  // each copy's own
  void write_back_line(uint64_t offset) override;
  void drain() override;
  Result<void> make_durable() override;
  Result<void> extend(uint64_t size) override;

 private:
  std::array<std::unique_ptr<Region>, 2> copies_;
};

}  // namespace streamfs::pmem
