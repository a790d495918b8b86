#include "pmem/latency_region.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::pmem {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct PerThread {
  bool charges = true;
  uint64_t line_read = ~uint64_t{0};
  SteadyClock::time_point programmed;  // when all lines that this thread has flushed are programmed
};

PerThread& mine() {
  thread_local PerThread per_thread;
  return per_thread;
}

void spin_until(SteadyClock::time_point end) {
  while (SteadyClock::now() < end) {
  }
}

class LatencyRegionImpl final : public LatencyRegion {
 public:
  LatencyRegionImpl(uint64_t size, MetaClass meta_class, const LatencyModel& model)
      : words_(size / kWordSize), medium_(words_.size()), class_(meta_class), model_(model) {
    attach(reinterpret_cast<std::byte*>(words_.data()), words_.size() * kWordSize);
    watch_loads();
  }
  MetaClass meta_class() const override { return class_; }
  void charge(bool on) override { mine().charges = on; }

 protected:
  void on_store(uint64_t, uint64_t) override {}
  void on_load(uint64_t offset) const override {
    PerThread& me = mine();
    const uint64_t line = round_down(offset, kLineSize);
    if (!me.charges || me.line_read == line) return;
    me.line_read = line;
    spin_until(SteadyClock::now() + std::chrono::nanoseconds(model_.read_line_ns));
  }
  void write_back_line(uint64_t offset) override {
    const uint64_t changed = take_changed(offset);
    PerThread& me = mine();
    if (!me.charges || changed == 0) return;
    const std::chrono::nanoseconds cost(model_.program_line_ns + changed * model_.program_word_ns);
    const MutexLock lock(mutex_);
    busy_until_ = std::max(busy_until_, SteadyClock::now()) + cost;
    me.programmed = busy_until_;
  }
  void drain() override {
    if (mine().charges) spin_until(mine().programmed);
  }
  Result<void> make_durable() override { return {}; }

 private:
  // Returns how many words of the line the medium did not hold, and stores them there.
  uint64_t take_changed(uint64_t offset) {
    uint64_t changed = 0;
    for (uint64_t at = offset; at < offset + kLineSize; at += kWordSize) {
      const uint64_t now = std::atomic_ref(words_[at / kWordSize]).load(std::memory_order_relaxed);
      const std::atomic_ref held(medium_[at / kWordSize]);
      if (held.exchange(now, std::memory_order_relaxed) != now) ++changed;
    }
    return changed;
  }

  std::vector<uint64_t> words_, medium_;
  MetaClass class_;
  LatencyModel model_;
  Mutex mutex_;  // leaf
  SteadyClock::time_point busy_until_ SFS_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<LatencyRegion> make_latency_region(uint64_t size, MetaClass meta_class,
                                                   const LatencyModel& model) {
  return std::make_unique<LatencyRegionImpl>(size, meta_class, model);
}

}  // namespace streamfs::pmem
