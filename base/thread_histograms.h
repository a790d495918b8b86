// Histograms for many threads, beside thread_counters.h. Threads count in 16 lines of memory; with
// more than 16 threads some share a line.
//
// Memory: a thread's histogram takes 264 bytes, and 512 bytes for each octave that has a value;
// they are allocated when the first value comes. Ten octaves, the times of a typical operation,
// take 5 KiB instead of the 16 KiB of all buckets. Thread safety: all methods, any thread; a sum
// may lack concurrent additions.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/log_histogram.h"
#include "base/thread_number.h"
#include "base/types.h"

namespace streamfs {

template <size_t kHistograms>
class ThreadHistograms {
 public:
  ThreadHistograms() = default;
  ThreadHistograms(const ThreadHistograms&) = delete;
  ThreadHistograms& operator=(const ThreadHistograms&) = delete;
  ~ThreadHistograms() {
    for (const Line& line : lines_)
      for (const Histogram& each : line.histograms)
        for (const auto& octave : each.octaves) delete octave.load(std::memory_order_relaxed);
  }

  void add(size_t histogram, uint64_t value) {
    Histogram& mine = lines_[thread_number() % kLines].histograms[histogram];
    const size_t bucket = LogBuckets::of(value);
    std::atomic<Octave*>& slot = mine.octaves[bucket / LogBuckets::kPerOctave];
    Octave* octave = slot.load(std::memory_order_acquire);
    if (octave == nullptr) octave = &allocated(slot);
    octave->counts[bucket % LogBuckets::kPerOctave].fetch_add(1, std::memory_order_relaxed);
    mine.sum.fetch_add(value, std::memory_order_relaxed);
  }
  LogHistogram sum(size_t histogram) const {
    LogHistogram out;
    for (const Line& line : lines_) {
      const Histogram& each = line.histograms[histogram];
      out.sum += each.sum.load(std::memory_order_relaxed);
      for (size_t i = 0; i < LogBuckets::kOctaves; ++i) {
        const Octave* octave = each.octaves[i].load(std::memory_order_acquire);
        if (octave == nullptr) continue;
        for (size_t j = 0; j < LogBuckets::kPerOctave; ++j)
          out.counts[i * LogBuckets::kPerOctave + j] +=
              octave->counts[j].load(std::memory_order_relaxed);
      }
    }
    return out;
  }

 private:
  static constexpr size_t kLines = 16;
  struct alignas(kLineSize) Octave {
    std::array<std::atomic<uint64_t>, LogBuckets::kPerOctave> counts{};
  };
  struct Histogram {
    std::atomic<uint64_t> sum{0};
    std::array<std::atomic<Octave*>, LogBuckets::kOctaves> octaves{};
  };
  struct alignas(kLineSize) Line {
    std::array<Histogram, kHistograms> histograms{};
  };

  // Returns the octave of a slot that was seen empty. Another thread of the same line may come
  // first.
  [[gnu::noinline]] static Octave& allocated(std::atomic<Octave*>& slot) {
    auto made = std::make_unique<Octave>();
    Octave* found = nullptr;
    if (!slot.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) return *found;
    return *made.release();
  }

  std::array<Line, kLines> lines_{};
};

}  // namespace streamfs
