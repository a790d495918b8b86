#include "ssd/ftl/vstream/stream_map.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "learning/cluster.h"
#include "learning/yong.h"
#include "ssd/ftl/vstream/lifetimes.h"

namespace streamfs::ssd::vstream {

PStreamId StreamMap::of(Slot slot) {
  while (slot >= pstreams_.size()) {
    const auto turn = static_cast<uint16_t>((pstreams_.size() + 1) % options_.streams);
    pstreams_.push_back(options_.clustering == Clustering::kLiteralSpread ? PStreamId{turn}
                                                                          : kDefaultPStream);
  }
  return pstreams_[slot];
}

void StreamMap::restore(Slot slot, PStreamId pstream) {
  (void)of(slot);
  pstreams_[slot] = pstream;
}

void StreamMap::remap(uint64_t clock) {
  next_remap_ = clock + options_.remap_pages;
  if (options_.clustering != Clustering::kOurs) return remap_literally();
  const std::vector<learning::Sample> known = lifetimes_.close_window(clock);
  if (known.empty()) return;
  const std::vector<uint32_t> ranks = learning::cluster_by_lifetime(known, options_.streams);
  for (size_t i = 0; i < known.size(); ++i) {
    (void)of(known[i].vstream.value);
    pstreams_[known[i].vstream.value] = learning::pstream_of_rank(ranks[i], options_.streams);
  }
}

void StreamMap::remap_literally() {
  std::vector<learning::yong::Mapped> all;
  for (size_t i = 0; i < pstreams_.size(); ++i) {
    const auto slot = static_cast<Slot>(i);
    all.push_back({VStreamId{slot}, lifetimes_.published(slot), pstreams_[i]});
  }
  learning::yong::remap(all, options_.streams);
  for (const learning::yong::Mapped& one : all) pstreams_[one.vstream.value] = one.pstream;
}

}  // namespace streamfs::ssd::vstream
