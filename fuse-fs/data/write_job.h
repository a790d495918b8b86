// Writes one contiguous range of one file, from the caller's bytes to the engine's current view.
//
//   prepare ─► place ─► begin_overwrite ─► device writes ─► finish_write
//                └ ENOSPC: reclaim, place again
//
// A block of an unwritten extent is written in place, like a new block: no committed extent shows
// its content. Splitting the extent takes slots in META, which are found before the first write.
//
// Thread safety: none; a job belongs to one thread. Requires: the caller holds the range
// exclusively, and the arguments of the constructor outlive the job.
// After a crash: new blocks may hold the new bytes, but no record names the blocks. Overwritten
// blocks hold old sectors, new sectors or a mix, and their checksum says "not known". After an
// error the current view is as it was; overwritten blocks may hold new bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "base/wire/model_table.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/core.h"

namespace streamfs::data {

// Returns the vStream of the file's writes: the hinted one, else the inferred one.
VStreamId vstream_of(const placement::Placement& placement, const InodeState& state,
                     const meta::Attributes& attributes);
// Returns the inferred vStream, whether or not a hint overrides it.
VStreamId inferred_vstream(const placement::Placement& placement, const InodeState& state);

class WriteJob {
 public:
  // Afterwards the file is at least end_offset bytes long. Bytes past `attributes.size` count as
  // zeroes, whatever the device holds there.
  WriteJob(Core& core, InodeState& state, const meta::Attributes& attributes, uint64_t offset,
           ConstBytes in, uint64_t end_offset, meta::WriteTimes times);
  // Call it once. In a Trying (base/waiting.h) it returns would_wait() unless all of the data goes
  // to the write cache. Errors: ENOSPC, DATA has no free block or META no room; those of the device
  // and the metadata log.
  Result<void> run();
  // Returns whether run() failed because META has no room to split unwritten extents. A write of
  // whole extents needs none.
  bool lacks_slots() const { return lacks_slots_; }
  // Call it before run() if the range covers each unwritten extent in it as a whole.
  void splits_nothing() { splits_ = false; }

 private:
  // Blocks that are contiguous in file and device and go to one pStream.
  struct Segment {
    uint64_t page;  // in the request
    uint64_t count;
    BlockNo block;
    PStreamId stream;
    uint8_t age;  // class of what it overwrites; 0: nothing (base/wire/model_table.h)
    std::optional<BlockNo> moved_from;  // the blocks that it replaces by new ones
    bool is_new() const { return age == wire::kAgeNew || moved_from; }
  };
  placement::PageRun run(uint64_t page, uint64_t count, BlockNo block) const;
  Result<void> map();
  bool stays_in_memory() const;
  bool logs() const;
  bool passes_cache() const;
  bool moves(uint64_t page, uint64_t count, BlockNo block) const;
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
  bool move(uint64_t page, uint64_t count, BlockNo old);
  ConstBytes image(uint64_t page, uint64_t count) const;
  void add_segments(uint64_t page, uint64_t count, BlockNo block, bool overwrite);
  void add_moved(uint64_t page, uint64_t count, BlockNo block, BlockNo old);
  Result<void> begin_overwrite();
  Result<void> submit();
  void write(blockdev::IoBatch& batch, const Segment& head, uint64_t count);
  void tell_cache() const;
  void on_device(uint64_t epoch);
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
  std::optional<BlockNo> near_;  // the block after the last one placed: allocations begin here
  bool splits_ = true, lacks_slots_ = false;
  meta::SlotRoom slots_;
  bool refused_ = false;  // in a Trying: the write cache did not take a run
  bool all_cached_ = true;
  bool stays_ = false;  // all overwrites go in place, because no free block can be spared
  ConstBytes image_;    // count_ whole blocks
  std::vector<uint32_t> crcs_;
  bool checksums_wait_ = false;  // they are computed while the device writes
  std::vector<Segment> segments_;
  std::vector<meta::BlockRun> reserved_;
  std::vector<meta::BlockRun> converted_;  // of unwritten extents
  std::vector<placement::RoutedRun> runs_;
  placement::Placement::Cursor cursor_;
};

}  // namespace streamfs::data
