// vStream-FTL (Yong 2021) in the simulated device. The host names vStreams, which the device maps
// to its few pStreams by their lifetimes (ssd/ftl/vstream/stream_map.h).
//
// Copies have open blocks of their own (vSGC, algorithm 3):
//   kNormal       one for all copies
//   kAware        one for each pStream: that of the page's vStream, by the present map
//   kOwnPStream   one for each pStream: that of the block which the page is copied from. The
//                 difference from kAware is the gain of the look-up in the map
//
// The replay calls watch() before the first write. Memory: lifetimes.h.
#pragma once

#include <cstdint>
#include <memory>

#include "lab/placement/policy.h"
#include "ssd/ftl/vstream/stream_map.h"

namespace streamfs::lab {

enum class VStreamGc : uint8_t { kNormal, kOwnPStream, kAware };

class VStream final : public PlacementPolicy {
 public:
  struct Options {
    VStreamGc gc;
    ssd::vstream::StreamMap::Options map;
  };
  explicit VStream(const Options& options) : options_(options) {}

  uint16_t host_classes() const override { return options_.map.streams; }
  uint16_t classes() const override {
    const int for_copies = options_.gc == VStreamGc::kNormal ? 1 : options_.map.streams;
    return static_cast<uint16_t>(options_.map.streams + for_copies);
  }
  ssd::FlashWatcher* watch(const ssd::Geometry& geometry) override;
  ssd::FrontierId for_write(const PageWrite& write, uint64_t clock) override;
  ssd::FrontierId for_copy(ssd::Lpn page, ssd::FrontierId source, uint64_t clock) override;

 private:
  const Options options_;
  std::unique_ptr<ssd::vstream::StreamMap> map_;
};

}  // namespace streamfs::lab
