// Media without data, for fast replay over the same FTL. With a latency model it also simulates
// time; the replay brackets each host request with begin_write() and end_write() of the model. A
// watcher is told of each page that the host or garbage collection programs.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ssd/ftl/flash_watcher.h"
#include "ssd/ftl/page_map.h"
#include "ssd/latency.h"

namespace streamfs::ssd {

class NullMedia {
 public:
  explicit NullMedia(LatencyModel* latency = nullptr, FlashWatcher* watcher = nullptr)
      : latency_(latency), watcher_(watcher) {}

  int store(Ppn at, const std::byte*, uint32_t pages) {
    if (latency_ != nullptr) latency_->programmed(at, pages, true);
    return 0;
  }
  int move(std::span<const Ppn> from, Ppn to) {
    if (latency_ == nullptr) return 0;
    for (const Ppn page : from) latency_->copied_from(page);
    latency_->programmed(to, static_cast<uint32_t>(from.size()), false);
    return 0;
  }
  void stamp_host(Ppn at, Lpn, const WriteStamp& stamp) {
    if (watcher_ != nullptr) watcher_->stored(at, stamp);
  }
  void stamp_copy(Ppn at, Ppn from, uint64_t) {
    if (watcher_ != nullptr) watcher_->copied(at, from);
  }
  void stamp_pad(Ppn, uint64_t) {}
  void opened(BlockIndex, FrontierId) {}
  void committed(BlockIndex, uint32_t) {}
  bool erased(BlockIndex) {
    if (latency_ != nullptr) latency_->erased();
    return true;
  }
  void failed(BlockIndex) {}
  void retired(BlockIndex) {}

 private:
  LatencyModel* const latency_;
  FlashWatcher* const watcher_;
};

}  // namespace streamfs::ssd
