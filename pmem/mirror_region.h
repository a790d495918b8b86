// Keeps two copies of one region: every store, flush, fence and sync goes to both, loads use the
// first. After the loss of either copy, the other has everything that a fence or sync has promised.
//
// If both copies are the processor's memory, fence() is one instruction: the lines of both were
// flushed before it. The META class is that of the less durable copy, because each copy alone must
// keep the promise.
//
// If one copy lost a page (bus_errors.h), the next copies(), copy() or equalise() turns loads to
// the other, and the next sync() of the damaged copy fails. sync() drops a copy that fails: stores,
// loads and promises then use the other alone, and no sync() returns before on_copy_dropped()'s
// handler has recorded durably that the copy was dropped. sync() fails if both copies fail, or if a
// copy fails and there is no handler.
//
// Thread safety: as Region. A drop happens in one thread's sync(), beside loads and stores of all
// others; pointers from at() stay valid. After a crash: each copy may hold different unfenced
// stores. Recovery compares the copies (copy()) and repairs them (equalise()). Free space that
// recovery does not read may stay different (alike()).
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
  // The mirror is as large as the smaller copy.
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
  Result<uint64_t> medium_bytes() override;  // of the smaller copy
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
  // Returns the only copy that may be read; null: both may be.
  Region* readable() const;
  // Returns the only copy for both indices if readable() names one, because a caller may have
  // called copies() before.
  Region& copy_or_left(size_t index) const;
  template <typename Do>
  void each(Do&& apply) const;  // calls apply(copy) for each copy that is not dropped
  Result<void> drop(size_t failed, const Error& why);
  Result<void> settled() const;

  std::array<std::unique_ptr<Region>, 2> copies_;
  std::atomic<Region*> left_{nullptr};  // the remaining copy after a drop
  mutable Mutex mutex_;                 // taken before the handler's locks
  CopyDropped handler_ SFS_GUARDED_BY(mutex_);
  std::string dropped_ SFS_GUARDED_BY(mutex_);
  Result<void> settled_ SFS_GUARDED_BY(mutex_);  // the handler's result
};

}  // namespace streamfs::pmem
