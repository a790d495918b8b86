#include "ssd/ftl/emmc/media.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "ssd/ftl/emmc/active_block.h"
#include "ssd/ftl/emmc/context_log.h"
#include "ssd/ftl/emmc/interface.h"
#include "ssd/ftl/page_map.h"
#include "ssd/ftl/router.h"
#include "ssd/ftl/write_stamp.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/layout.h"
#include "ssd/media/nand_faults.h"
#include "ssd/media/spare_scan.h"

namespace streamfs::ssd::emmc {

Media::Media(Image& image, LatencyModel& latency, NandFaults* faults)
    : image_(image),
      flash_(image, latency, faults),
      log_(image, faults),
      geometry_(image.geometry()),
      active_(geometry_.frontiers(), kNoBlock),
      programmed_(geometry_.blocks),
      erased_since_(geometry_.blocks),
      dirty_(div_round_up(geometry_.user_pages, kChunkEntries)) {}

void Media::restore(const SpareScan& scan) {
  flash_.restore(scan);
  context_.base.location = scan.location;
  context_.base.blocks.clear();
  context_.base.sequence = scan.next_sequence - 1;
  for (BlockIndex block = 0; block < geometry_.blocks; ++block) {
    const RecoveredBlock& found = scan.blocks[block];
    context_.base.blocks.push_back({found.written, found.erases});
    programmed_[block] = found.written;
    const bool open = found.written > 0 && found.written < geometry_.pages_per_block;
    if (open && active_[found.frontier] == kNoBlock) active_[found.frontier] = block;
  }
}

ActiveBlock Media::record_of(FrontierId frontier) const {
  ActiveBlock record;
  const BlockIndex block = active_[frontier];
  record.block = block;
  record.stream = static_cast<uint8_t>(frontier);
  record.transfer_buffer = static_cast<uint8_t>(frontier);
  record.program_level = static_cast<uint8_t>(geometry_.nand.cell);
  record.sequence = context_.base.sequence;
  if (block == kNoBlock) return record;
  record.page_offset = context_.base.blocks[block].committed;
  record.erases = context_.base.blocks[block].erases;
  record.buffered_pages = programmed_[block] - context_.base.blocks[block].committed;
  return record;
}

bool Media::write_context() {
  if (!powered()) return false;
  if (damaged_) return true;
  for (FrontierId frontier = 0; frontier < kStreams + 2; ++frontier)
    context_.active[frontier] = record_of(frontier);
  powered_ = log_.append(context_, dirty_chunks_);
  if (!powered_) {
    flash_.power_off();
    return false;
  }
  for (const uint32_t chunk : dirty_chunks_) dirty_[chunk] = false;
  dirty_chunks_.clear();
  erased_since_.assign(geometry_.blocks, false);
  return true;
}

void Media::stamp_host(Ppn at, Lpn page, const WriteStamp& stamp) {
  ++programmed_[at / geometry_.pages_per_block];
  context_.base.sequence = stamp.sequence;
  flash_.stamp_host(at, page, stamp);
}

void Media::stamp_copy(Ppn at, Ppn from, uint64_t sequence) {
  ++programmed_[at / geometry_.pages_per_block];
  context_.base.sequence = sequence;
  flash_.stamp_copy(at, from, sequence);
}

void Media::stamp_pad(Ppn at, uint64_t sequence) {
  ++programmed_[at / geometry_.pages_per_block];
  context_.base.sequence = sequence;
  flash_.stamp_pad(at, sequence);
}

void Media::opened(BlockIndex block, FrontierId frontier) {
  active_[frontier] = block;
  if (erased_since_[block]) (void)write_context();
  flash_.opened(block, frontier);
}

void Media::committed(BlockIndex block, uint32_t pages) {
  flash_.committed(block, pages);
  if (!powered()) return;
  uint32_t& before = context_.base.blocks[block].committed;
  const Ppn first = block * geometry_.pages_per_block;
  for (Ppn at = first + before; at < first + pages; ++at) learn(at);
  before = pages;
  if (pages < geometry_.pages_per_block) return;
  std::ranges::replace(active_, block, kNoBlock);
}

// Takes a committed page into the map, unless the map has a newer one: pages may be committed in
// another order than they were programmed.
void Media::learn(Ppn at) {
  const SpareEntry& entry = image_.spare()[at];
  const uint32_t erases = image_.blocks()[at / geometry_.pages_per_block].erases;
  if (kind_of(entry, erases) != SpareKind::kProgrammed) damaged_ = true;
  if (damaged_ || entry.lpn == kNoPage || entry.lpn >= geometry_.user_pages ||
      image_.trims()[entry.lpn] >= entry.sequence)
    return;
  const Ppn known = context_.base.location[entry.lpn];
  if (known != kNoPage && image_.spare()[known].lpn == entry.lpn &&
      image_.spare()[known].sequence > entry.sequence)
    return;
  place(entry.lpn, at);
}

void Media::place(Lpn page, Ppn at) {
  context_.base.location[page] = at;
  const uint32_t chunk = page / kChunkEntries;
  if (dirty_[chunk]) return;
  dirty_[chunk] = true;
  dirty_chunks_.push_back(chunk);
}

bool Media::erased(BlockIndex block) {
  const bool good = flash_.erased(block);
  if (!powered()) return good;
  ++context_.base.blocks[block].erases;
  context_.base.blocks[block].committed = programmed_[block] = 0;
  erased_since_[block] = true;
  return good;
}

void Media::trimmed(Lpn page, uint64_t sequence) {
  flash_.trimmed(page, sequence);
  if (!powered()) return;
  context_.base.sequence = sequence;
  place(page, kNoPage);
}

}  // namespace streamfs::ssd::emmc
