// One region kept twice: every store, flush, fence and sync goes to both copies, loads are from the
// first. Losing either leaves the other with everything that was promised.
//
// One fence() is one for the caller, and where both copies are the processor's memory it is one
// instruction: the lines of both were flushed before it. The META class is that of the copy that
// keeps less, because whoever waits for durability is promised it of either copy alone.
//
// A copy that has lost a page (bus_errors.h) is not read any more, and its next sync fails. A copy
// whose sync fails is given up: from then on stores, loads and promises are the other's alone,
// and on_copy_dropped()'s handler says so on media before anybody is promised anything. What was
// promised before, both had. Only when both fail does sync().
//
// Thread safety: as Region. A drop happens in one thread's sync(), beside loads and stores of all
// others; pointers from at() stay good. What a crash leaves: of what was not fenced, each copy
// keeps its own choice. Whoever recovers finds out what one holds and the other does not (copy(),
// equalise()); free space that nobody read may stay different (alike()).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "pmem/region.h"

namespace streamfs::pmem {

class MirrorRegion final : public Region {
 public:
  // As large as the smaller.
  MirrorRegion(std::unique_ptr<Region> first, std::unique_ptr<Region> second);

  MetaClass meta_class() const override;
  std::string medium() const override;
  size_t copies() const override { return readable() == nullptr ? copies_.size() : 1; }
  Region& copy(size_t index) override { return copy_or_left(index); }
  const Region& copy(size_t index) const override { return copy_or_left(index); }
  void on_copy_dropped(CopyDropped handler) override;
  std::string dropped() const override;
  uint64_t lost() const override;
  bool equalise(size_t from, uint64_t offset, uint64_t length) const override;
  Result<uint64_t> medium_bytes() override;  // of the smaller
  bool extensible() const override;

 protected:
  uint64_t put(uint64_t offset, std::span<const uint64_t> words) override;
  uint64_t put_masked(uint64_t offset, uint64_t mask, uint64_t value) override;
  void on_store(uint64_t, uint64_t) override {}  // each copy's own
  void write_back_line(uint64_t offset) override;
  void drain() override;
  Result<void> make_durable() override;
  Result<void> extend(uint64_t size) override;

 private:
  Region* left() const { return left_.load(std::memory_order_acquire); }
  // The only copy that is to be read; none: both are.
  Region* readable() const;
  // Whoever counted the copies before finds the one that is left, twice.
  Region& copy_or_left(size_t index) const;
  template <typename Do>
  void each(Do&& apply) const;  // copy in use
  Result<void> drop(size_t failed, const Error& why);
  Result<void> settled() const;

  std::array<std::unique_ptr<Region>, 2> copies_;
  std::atomic<Region*> left_{nullptr};  // once one was dropped
  mutable Mutex mutex_;                 // before whatever the handler locks
  CopyDropped handler_ SFS_GUARDED_BY(mutex_);
  std::string dropped_ SFS_GUARDED_BY(mutex_);
  Result<void> settled_ SFS_GUARDED_BY(mutex_);  // what the handler said
};

}  // namespace streamfs::pmem
