// The flash of a vStream device, as PageMap uses it: an ImageMedia that reports programs and copies
// to the map of vStreams.
// Thread safety, crashes: as ImageMedia. The map itself is lost with the power; see restore().
#pragma once

#include <vector>

#include "ssd/ftl/vstream/stream_map.h"
#include "ssd/ftl/write_stamp.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/media/image_media.h"
#include "ssd/media/nand_faults.h"
#include "ssd/media/spare_scan.h"

namespace streamfs::ssd::vstream {

class Media : public ImageMedia {
 public:
  Media(Image& image, LatencyModel& latency, NandFaults* faults);

  StreamMap& map() { return map_; }
  const StreamMap& map() const { return map_; }

  // Takes the state that power-up found. The spare entries of live pages give the ages of the
  // vStreams' pages, and each vStream gets the pStream of its newest live page. It keeps that until
  // enough of its pages died again, because deaths before the power-up are not known.
  void restore(const SpareScan& scan);

  // These calls of PageMap hide those of ImageMedia.
  void stamp_host(Ppn at, Lpn page, const WriteStamp& stamp);
  void stamp_copy(Ppn at, Ppn from, uint64_t sequence);

 private:
  Image& image_;
  StreamMap map_;
};

}  // namespace streamfs::ssd::vstream
