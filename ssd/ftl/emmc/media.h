// The flash of an eMMC, which also keeps the next global context: the committed pages of each
// block, and the place of each logical page among them. Its map covers only programmed wordlines,
// because the transfer buffers are lost with the power.
//
// A block that was erased since the last context is opened only after the next one. Pages that a
// context does not cover are therefore behind the active blocks' offsets or in blocks that were
// free.
//
// Thread safety: none. After a crash: see context_log.h. PageMap's calls are those of ImageMedia.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ssd/ftl/emmc/context_log.h"
#include "ssd/ftl/page_map.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/media/image_media.h"
#include "ssd/media/spare_scan.h"

namespace streamfs::ssd::emmc {

class Media {
 public:
  Media(Image& image, LatencyModel& latency, NandFaults* faults);
  void restore(const SpareScan& scan);

  ImageMedia& flash() { return flash_; }
  // Returns false after a power cut.
  bool write_context();
  ContextLog& log() { return log_; }
  bool powered() const { return flash_.powered() && powered_; }

  int store(Ppn at, const std::byte* data, uint32_t pages) { return flash_.store(at, data, pages); }
  int move(std::span<const Ppn> from, Ppn to) { return flash_.move(from, to); }
  void stamp_host(Ppn at, Lpn page, const WriteStamp& stamp);
  void stamp_copy(Ppn at, Ppn from, uint64_t sequence);
  void stamp_pad(Ppn at, uint64_t sequence);
  void opened(BlockIndex block, FrontierId frontier);
  void committed(BlockIndex block, uint32_t pages);
  bool erased(BlockIndex block);
  void failed(BlockIndex block) { flash_.failed(block); }
  void retired(BlockIndex block) { flash_.retired(block); }
  void trimmed(Lpn page, uint64_t sequence);

 private:
  void learn(Ppn at);
  void place(Lpn page, Ppn at);
  ActiveBlock record_of(FrontierId frontier) const;

  Image& image_;
  ImageMedia flash_;
  ContextLog log_;
  const Geometry geometry_;
  Context context_;                   // the next one, without the active blocks' records
  std::vector<BlockIndex> active_;    // by frontier
  std::vector<uint32_t> programmed_;  // by block, buffered pages included
  std::vector<bool> erased_since_;    // by block: since the last context
  std::vector<uint32_t> dirty_chunks_;
  std::vector<bool> dirty_;  // by chunk
  bool powered_ = true;
};

}  // namespace streamfs::ssd::emmc
