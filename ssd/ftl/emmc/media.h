// The flash of an eMMC, as PageMap uses it: an ImageMedia that also writes contexts to a log. A
// *context* has the map of logical pages, the number of committed pages of each block, and the
// blocks that were being filled (active blocks).
//
// Power-up reads the last context, and then only the spare areas of blocks that were not full in
// it: its active blocks, and blocks that were free then. No other block can have newer pages,
// because opened() writes a new context before it opens a block that was erased since the last one.
// The map has committed pages only, because the transfer buffers are lost with the power.
//
// Thread safety: none. After a crash: see context_log.h.
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
  void restore(const SpareScan& scan);  // takes the state that power-up found

  // Returns false after a power cut. Writes nothing once a page with a damaged spare entry was
  // copied, because the map cannot be right any more. Power-up then finds an old context
  // (scan_spare_since()).
  bool write_context();
  ContextLog& log() { return log_; }
  bool powered() const { return flash_.powered() && powered_; }
  int read(Ppn first, std::byte* data, uint32_t pages) const {
    return flash_.read(first, data, pages);
  }

  // ---- The calls of PageMap: see ImageMedia. opened() may write a context and so lose the power.
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
  bool damaged_ = false;     // garbage collection copied a page with a damaged spare entry
  bool powered_ = true;
};

}  // namespace streamfs::ssd::emmc
