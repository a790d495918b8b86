#include "lab/placement/vstream.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.h"
#include "lab/placement/policy.h"
#include "learning/cluster.h"
#include "learning/yong.h"
#include "ssd/ftl/flash_watcher.h"
#include "ssd/ftl/router.h"
#include "ssd/ftl/vstream/lifetimes.h"
#include "ssd/geometry.h"

namespace streamfs::lab {

ssd::FlashWatcher* VStream::watch(const ssd::Geometry& geometry) {
  lifetimes_ = std::make_unique<ssd::vstream::Lifetimes>(geometry);
  return lifetimes_.get();
}

PStreamId VStream::pstream(ssd::vstream::Slot slot) {
  while (slot >= pstreams_.size()) {
    const auto turn = static_cast<uint16_t>(pstreams_.size() % options_.streams);
    pstreams_.push_back(options_.clustering == Clustering::kLiteralSpread ? PStreamId{turn}
                                                                          : kDefaultPStream);
  }
  return pstreams_[slot];
}

ssd::FrontierId VStream::for_write(const PageWrite& write, uint64_t clock) {
  if (clock >= next_remap_) remap(clock);
  return pstream(ssd::vstream::slot_of(write.vstream)).value;
}

ssd::FrontierId VStream::for_copy(ssd::Lpn, ssd::FrontierId source, uint64_t) {
  if (options_.gc == VStreamGc::kNormal) return options_.streams;
  const auto into = options_.gc == VStreamGc::kAware
                        ? pstream(lifetimes_->last_read()).value
                        : static_cast<uint16_t>(source % options_.streams);
  return static_cast<ssd::FrontierId>(options_.streams + into);
}

void VStream::remap(uint64_t clock) {
  next_remap_ = clock + options_.remap_pages;
  if (options_.clustering != Clustering::kOurs) return remap_literally();
  const std::vector<learning::Sample> known = lifetimes_->close_window(clock);
  if (known.empty()) return;
  const std::vector<uint32_t> ranks = learning::cluster_by_lifetime(known, options_.streams);
  for (size_t i = 0; i < known.size(); ++i) {
    (void)pstream(known[i].vstream.value);
    pstreams_[known[i].vstream.value] = learning::pstream_of_rank(ranks[i], options_.streams);
  }
}

void VStream::remap_literally() {
  std::vector<learning::yong::Mapped> all;
  for (size_t i = 0; i < pstreams_.size(); ++i) {
    const auto slot = static_cast<ssd::vstream::Slot>(i);
    all.push_back({VStreamId{slot}, lifetimes_->published(slot), pstreams_[i]});
  }
  learning::yong::remap(all, options_.streams);
  for (const learning::yong::Mapped& one : all) pstreams_[one.vstream.value] = one.pstream;
}

}  // namespace streamfs::lab
