// One write of one contiguous range, from the caller's bytes to the engine's current view.
//
//   prepare ─► place ─► begin_overwrite ─► device writes ─► finish_write
//                └ ENOSPC: reclaim, place again
//
// A block of an unwritten extent is written like a new one, where it is: nothing durable shows what
// it holds. That takes room in META for what the extent becomes, which is found before anything is
// written.
//
// Thread safety: a job is one thread's; its caller holds the inode's blocks exclusively.
// What a crash leaves: blocks that were allocated may hold the new bytes, and nobody names them;
// overwritten ones hold old, new or a mix of sectors, and their checksum says "not known".
// A failure leaves the current view as it was.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "base/wire/model_table.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/core.h"

namespace streamfs::data {

// Pages of a request whose length is not known.
inline constexpr uint32_t kLongRequest = std::numeric_limits<uint32_t>::max();

// Which vStream the file's writes belong to: the one somebody said, else the inferred one.
VStreamId vstream_of(const placement::Placement& placement, const InodeState& state,
                     const meta::Attributes& attributes);
// Returns the inferred vStream, whether or not a hint overrides it.
VStreamId inferred_vstream(const placement::Placement& placement, const InodeState& state);

class WriteJob {
 public:
  // The file is at least end_offset long afterwards; bytes past `attributes.size` are taken as zero
  // whatever the device holds there.
  WriteJob(Core& core, InodeState& state, const meta::Attributes& attributes, uint64_t offset,
           ConstBytes in, uint64_t end_offset, meta::WriteTimes times);
  Result<void> run();
  // Why run() failed: it would split unwritten extents, and META has no room for that. Whoever
  // makes them written as a whole needs none.
  bool lacks_slots() const { return lacks_slots_; }
  // Every unwritten extent is written as a whole.
  void splits_nothing() { splits_ = false; }

 private:
  // Blocks that are contiguous in file and device and go to one pStream.
  struct Segment {
    uint64_t page;  // in the request
    uint64_t count;
    BlockNo block;
    PStreamId stream;
    uint8_t age;  // class of what it overwrites; 0: nothing (base/wire/model_table.h)
    bool is_new() const { return age == wire::kAgeNew; }
  };
  placement::PageRun run(uint64_t page, uint64_t count, BlockNo block) const;
  Result<void> map();
  Result<void> find_slots();
  Result<void> prepare();
  Result<void> fill_slot(uint64_t page, Bytes slot);
  Result<void> load_old(uint64_t page, Bytes slot);
  const meta::Piece& piece_at(uint64_t page) const;
  Result<void> place();
  Result<void> place_or_reclaim();
  Result<void> allocate(uint64_t page, uint64_t count);
  void convert(uint64_t page, uint64_t count, BlockNo block);
  void overwrite(uint64_t page, uint64_t count, BlockNo block);
  ConstBytes image(uint64_t page, uint64_t count) const;
  void add_segments(uint64_t page, uint64_t count, BlockNo block, bool overwrite);
  Result<void> begin_overwrite();
  Result<void> submit();
  void write(blockdev::IoBatch& batch, const Segment& head, uint64_t count);
  Result<void> finish();
  meta::WriteResult result() const;
  void report_write() const;
  void cancel(bool submitted);

  Core& core_;
  InodeState& state_;
  const meta::Attributes& attributes_;
  const uint64_t offset_, end_offset_;
  const ConstBytes in_;
  const uint64_t first_, count_;  // file blocks
  const VStreamId vstream_;
  const meta::WriteTimes times_;
  std::vector<meta::Piece> pieces_;
  std::optional<BlockNo> near_;  // an allocation here stays contiguous
  bool splits_ = true, lacks_slots_ = false;
  meta::SlotRoom slots_;
  bool stays_ = false;  // whatever is overwritten: there is no room for more
  ConstBytes image_;    // count_ whole blocks
  std::vector<uint32_t> crcs_;
  bool checksums_wait_ = false;  // for the device to be at work
  std::vector<Segment> segments_;
  std::vector<meta::BlockRun> reserved_;
  std::vector<meta::BlockRun> converted_;  // of unwritten extents
  std::vector<placement::RoutedRun> runs_;
};

}  // namespace streamfs::data
