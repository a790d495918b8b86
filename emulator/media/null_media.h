// Media without data: replay at full speed over the same FTL. With a latency model it keeps time,
// too; the replay brackets each host request with begin_write() and end_write() of the model.
// Without one every call is next to nothing.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/ftl/page_map.h"
#include "emulator/latency.h"

namespace streamfs::emulator {

class NullMedia {
 public:
  explicit NullMedia(LatencyModel* latency = nullptr) : latency_(latency) {}

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
  void stamp_host(Ppn, Lpn, WriteStamp) {}
  void stamp_copy(Ppn, Ppn, uint64_t) {}
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
};

}  // namespace streamfs::emulator
