// The flash of a vStream device, as PageMap uses it: an ImageMedia whose programs and copies are
// reported to the map of vStreams.
// Thread safety, crashes: as ImageMedia. The map itself is lost with the power; see restore().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ssd/ftl/router.h"
#include "ssd/ftl/vstream/stream_map.h"
#include "ssd/ftl/write_stamp.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/media/image_media.h"
#include "ssd/media/nand_faults.h"
#include "ssd/media/spare_scan.h"

namespace streamfs::ssd::vstream {

class Media {
 public:
  Media(Image& image, LatencyModel& latency, NandFaults* faults);

  StreamMap& map() { return map_; }
  const StreamMap& map() const { return map_; }

  // Takes the state that power-up found. The spare entries of live pages give the ages of the
  // vStreams' pages, and each vStream gets the pStream of its newest live page. It keeps that until
  // enough of its pages died again, because deaths before the power-up are not known.
  void restore(const SpareScan& scan);

  bool powered() const { return flash_.powered(); }
  int read(Ppn first, std::byte* data, uint32_t pages) const {
    return flash_.read(first, data, pages);
  }
  void trimmed(Lpn page, uint64_t sequence) { flash_.trimmed(page, sequence); }

  // ---- The calls of PageMap: see ImageMedia.
  int store(Ppn at, const std::byte* data, uint32_t pages) { return flash_.store(at, data, pages); }
  int move(std::span<const Ppn> from, Ppn to) { return flash_.move(from, to); }
  void stamp_host(Ppn at, Lpn page, const WriteStamp& stamp);
  void stamp_copy(Ppn at, Ppn from, uint64_t sequence);
  void stamp_pad(Ppn at, uint64_t sequence) { flash_.stamp_pad(at, sequence); }
  void opened(BlockIndex block, FrontierId frontier) { flash_.opened(block, frontier); }
  void committed(BlockIndex block, uint32_t pages) { flash_.committed(block, pages); }
  bool erased(BlockIndex block) { return flash_.erased(block); }
  void failed(BlockIndex block) { flash_.failed(block); }
  void retired(BlockIndex block) { flash_.retired(block); }

 private:
  Image& image_;
  ImageMedia flash_;
  StreamMap map_;
};

}  // namespace streamfs::ssd::vstream
