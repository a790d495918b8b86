#include "lab/placement/vstream.h"

#include <cstdint>
#include <memory>

#include "lab/placement/policy.h"
#include "ssd/ftl/flash_watcher.h"
#include "ssd/ftl/router.h"
#include "ssd/ftl/vstream/lifetimes.h"
#include "ssd/ftl/vstream/stream_map.h"
#include "ssd/geometry.h"

namespace streamfs::lab {

ssd::FlashWatcher* VStream::watch(const ssd::Geometry& geometry) {
  map_ = std::make_unique<ssd::vstream::StreamMap>(geometry, options_.map);
  return &map_->lifetimes();
}

ssd::FrontierId VStream::for_write(const PageWrite& write, uint64_t clock) {
  (void)map_->advance(clock);
  return map_->of(ssd::vstream::slot_of(write.vstream)).value;
}

ssd::FrontierId VStream::for_copy(ssd::Lpn, ssd::FrontierId source, uint64_t) {
  const uint16_t streams = options_.map.streams;
  if (options_.gc == VStreamGc::kNormal) return streams;
  const auto into = options_.gc == VStreamGc::kAware ? map_->of(map_->lifetimes().last_read()).value
                                                     : static_cast<uint16_t>(source % streams);
  return static_cast<ssd::FrontierId>(streams + into);
}

}  // namespace streamfs::lab
