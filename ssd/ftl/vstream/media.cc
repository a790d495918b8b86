#include "ssd/ftl/vstream/media.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "ssd/ftl/vstream/lifetimes.h"
#include "ssd/ftl/vstream/stream_map.h"
#include "ssd/ftl/write_stamp.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/layout.h"
#include "ssd/media/image_media.h"
#include "ssd/media/nand_faults.h"
#include "ssd/media/spare_scan.h"

namespace streamfs::ssd::vstream {
namespace {

StreamMap::Options options_for(const Geometry& geometry) {
  constexpr uint64_t kRemapsPerCapacity = 64;
  return {.streams = geometry.streams,
          .remap_pages = std::max<uint64_t>(geometry.user_pages / kRemapsPerCapacity, 1)};
}

}  // namespace

Media::Media(Image& image, LatencyModel& latency, NandFaults* faults)
    : image_(image),
      flash_(image, latency, faults),
      map_(image.geometry(), options_for(image.geometry())) {}

void Media::restore(const SpareScan& scan) {
  flash_.restore(scan);
  std::vector<bool> live(image_.geometry().physical_pages());
  for (const Ppn at : scan.location)
    if (at != kNoPage) live[at] = true;
  const uint64_t clock = image_.shared().now.host_pages;
  const uint32_t block_pages = image_.geometry().pages_per_block;
  std::vector<uint64_t> newest(size_t{UINT16_MAX} + 1);  // by slot: 1 + the latest host write
  for (BlockIndex block = 0; block < scan.blocks.size(); ++block) {
    for (Ppn at = block * block_pages; at < block * block_pages + scan.blocks[block].written;
         ++at) {
      const SpareEntry& entry = image_.spare()[at];
      const Slot slot = live[at] ? slot_of(entry.vstream) : kDeadSlot;
      map_.lifetimes().restore(at, slot, entry.written_at, clock);
      // A copy keeps the time and the pStream of its host write.
      if (slot == kDeadSlot || entry.written_at < newest[slot]) continue;
      newest[slot] = entry.written_at + 1;
      map_.restore(slot, PStreamId{entry.pstream});
    }
  }
  map_.restore(clock);
}

void Media::stamp_host(Ppn at, Lpn page, const WriteStamp& stamp) {
  flash_.stamp_host(at, page, stamp);
  map_.lifetimes().stored(at, stamp);
}

void Media::stamp_copy(Ppn at, Ppn from, uint64_t sequence) {
  flash_.stamp_copy(at, from, sequence);
  map_.lifetimes().copied(at, from);
}

}  // namespace streamfs::ssd::vstream
