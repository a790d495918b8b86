// The flash of an eMMC, which knows what the next global context has to say: of each block how much
// is committed, and where each logical page lies of what is committed. Its map is one of programmed
// wordlines, as what is in a transfer buffer is lost with the power.
//
// A block that was erased since the last context is not opened before the next one: so what a
// context does not know of lies behind the active blocks' offsets and in blocks that were free.
// Thread safety: none. Crash: context_log.h. The calls of PageMap are those of ImageMedia.
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
  // False once the power is gone.
  bool write_context();
  const ContextLog& log() const { return log_; }
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
  Context context_;                   // as it would be written now, but for the records
  std::vector<BlockIndex> active_;    // by frontier
  std::vector<uint32_t> programmed_;  // by block, buffered pages included
  std::vector<bool> erased_since_;    // by block: since the last context
  std::vector<uint32_t> dirty_chunks_;
  std::vector<bool> dirty_;  // by chunk
  bool powered_ = true;
};

}  // namespace streamfs::ssd::emmc
