#include "emulator/policy/placement/vstream.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.h"
#include "emulator/ftl/router.h"
#include "emulator/ftl/vstream/lifetimes.h"
#include "emulator/geometry.h"
#include "emulator/policy/placement/policy.h"
#include "learning/cluster.h"
#include "learning/yong.h"

namespace streamfs::emulator {

FlashWatcher* VStream::watch(const Geometry& geometry) {
  lifetimes_ = std::make_unique<vstream::Lifetimes>(geometry);
  return lifetimes_.get();
}

PStreamId VStream::pstream(vstream::Slot slot) {
  while (slot >= pstreams_.size()) {
    const auto turn = static_cast<uint16_t>(pstreams_.size() % options_.streams);
    pstreams_.push_back(options_.clustering == Clustering::kLiteralSpread ? PStreamId{turn}
                                                                          : kDefaultPStream);
  }
  return pstreams_[slot];
}

FrontierId VStream::for_write(const PageWrite& write, uint64_t clock) {
  if (clock >= next_remap_) remap(clock);
  return pstream(vstream::slot_of(write.vstream)).value;
}

FrontierId VStream::for_copy(Lpn, FrontierId source, uint64_t) {
  if (options_.gc == VStreamGc::kNormal) return options_.streams;
  const auto into = options_.gc == VStreamGc::kAware
                        ? pstream(lifetimes_->last_read()).value
                        : static_cast<uint16_t>(source % options_.streams);
  return static_cast<FrontierId>(options_.streams + into);
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
    const auto slot = static_cast<vstream::Slot>(i);
    all.push_back({VStreamId{slot}, lifetimes_->published(slot), pstreams_[i]});
  }
  learning::yong::remap(all, options_.streams);
  for (const learning::yong::Mapped& one : all) pstreams_[one.vstream.value] = one.pstream;
}

}  // namespace streamfs::emulator
