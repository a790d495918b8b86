// Media without data, and with time if asked: a replay's throughput and latencies.
// The replay brackets each host request with begin_write() and end_write() of the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/ftl/page_map.h"
#include "emulator/latency.h"
#include "emulator/media/null_media.h"

namespace streamfs::emulator {

class TimedMedia : public NullMedia {
 public:
  explicit TimedMedia(LatencyModel* latency) : latency_(latency) {}  // none: no time

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
  bool erased(BlockIndex) {
    if (latency_ != nullptr) latency_->erased();
    return true;
  }

 private:
  LatencyModel* const latency_;
};

}  // namespace streamfs::emulator
