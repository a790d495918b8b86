// The intent log: blocks of DATA that were committed before they are on DATA, kept in META.
//
//   WRITE ─► write cache ─fsync─► entries, fence ─► the record that names the blocks, fence
//                 │
//                 └─a round─► DATA, device flush ─► expire(): the entries count no more
//
// The log has segments of kRingSize bytes. A segment has a line for the two slots of the expired
// word, which only the first segment uses, and entries. An entry is an IntentEntry, and then the
// lines of the block that it holds. Lines that it does not hold are those of its base entry, or
// zeroes. An entry counts if its checksum holds, its sequence is above the expired word, and all
// entries before it in its segment are whole with smaller sequences. Entries are never changed.
//
// A record that is committed with its blocks in the log always gives the file new blocks, and a
// freed block is reusable only after the round that follows the freeing record. A counting entry
// whose block is allocated therefore always has that block's content, and no entry is ever void.
//
// Thread safety: any thread. A Batch belongs to one thread.
// After a crash: every entry counts whose batch was fenced, and that is not expired. Entries of the
// batch that was cut count or not. Their blocks belong to no file, because a record comes after the
// fence of its entries. open() finds them all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/geometry.h"
#include "pmem/region.h"

namespace streamfs::meta {

class IntentLog {
 public:
  // Where an entry lies, for entries that build on it.
  struct Place {
    uint64_t sequence = 0;  // 0: nowhere
    uint64_t offset = 0;    // in META
    uint32_t depth = 0;     // entries that it builds on
  };
  struct Content {
    InodeId inode;
    BlockNo block;
    VStreamId vstream;
    ConstBytes bytes;  // kBlockSize
    // The entry of a block with similar content, and that content; empty: none.
    Place base = {};
    ConstBytes base_bytes = {};
  };

  // Reads the log. Its time depends on the size of the log only.
  // Errors: ENODATA, META has no intent log; EIO, the expired word is damaged, or a counting entry
  // builds on one that is not there.
  static Result<std::unique_ptr<IntentLog>> open(pmem::Region& region, const Geometry& geometry);

  // ---- For a repair
  struct Damage {
    bool expired_word = false;  // both slots are damaged, so no entry is known to count
    uint64_t baseless = 0;      // entries whose base entry is missing
    bool any() const { return expired_word || baseless > 0; }
  };
  // Like open(), but continues past damage. Finds every whole entry that is not expired, including
  // those behind a damaged entry. If the expired word is damaged, expired entries are found as
  // well, and no entry counts. Errors: ENODATA.
  static Result<std::unique_ptr<IntentLog>> salvage(pmem::Region& region, const Geometry& geometry);
  const Damage& damage() const { return damage_; }
  // Makes the log an empty one, durably. Call it instead of start(). After a crash: the log is
  // empty, damaged, or has some of its entries.
  void reset();

  // ---- What open() found
  struct Found {
    Place place;
    InodeId inode;
    BlockNo block;
    VStreamId vstream;
    bool counts = true;  // always true after open()
    // The entry is damaged or its base entry is missing. Always false after open(). Requires: the
    // caller does not read() an unreadable entry.
    bool unreadable = false;
  };
  // Returns the newest counting entry of each block that is allocated, by block.
  std::vector<Found> found() const;
  // Returns all entries of blocks that are allocated, by sequence.
  std::vector<Found> entries() const;
  // Returns how many entries count, also of blocks that are not allocated.
  uint64_t entries_found() const {
    return static_cast<uint64_t>(std::ranges::count(live_, true, &Found::counts));
  }
  // Copies the block of a found entry. Requires: start() was not called.
  void read(const Place& place, Bytes block) const;
  // Expires what open() found, durably, and everything that a cut batch may have left behind it.
  // Call it once, before the first batch. Requires: the blocks of found() are durable on DATA.
  void start();

  // ---- Writing
  // The entries of one commit. Unless keep() is called, the destructor takes them back, durably,
  // because their blocks may get other content without a newer entry. Requires: until then no block
  // of the batch changes or is freed.
  class Batch {
   public:
    ~Batch();
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    // Stores an entry. Requires: the batch was begun for so many blocks.
    Place append(const Content& content);
    pmem::Flushed flushed() { return std::move(flushed_); }  // for the fence of the commit
    void keep() { kept_ = true; }                            // after that fence

   private:
    friend class IntentLog;
    Batch(IntentLog& log, size_t segment);
    IntentLog& log_;
    const size_t segment_;
    uint64_t first_ = 0;  // META offset of the first entry; 0: there is none
    pmem::Flushed flushed_;
    bool kept_ = false;
  };
  // Begins a batch of at most `blocks` entries. Null: the log has no room for it.
  std::unique_ptr<Batch> begin(uint64_t blocks);

  // Returns the sequence of the newest entry, and begins a round: no later entry builds on an
  // entry up to it.
  uint64_t cut();
  // Expires the entries up to `through`, durably. Requires: their blocks are durable on DATA, or
  // free.
  void expire(uint64_t through);

  // Takes the segments that a growth of META has added. Requires: their first line is zeroes.
  void grow();

  // The entries of a batch lie in one segment.
  static constexpr uint64_t kBatchBytesMax =
      (kRingSize - 2 * kLineSize) / (kBlockSize + kLineSize) * kBlockSize;
  // Returns the bytes of blocks that a batch should have at most: a quarter of the log, or
  // kBatchBytesMax.
  uint64_t batch_bytes_max() const {
    return std::min(round_down(bytes() / 4, kBlockSize), kBatchBytesMax);
  }
  uint64_t bytes() const { return geometry_.intent_segments() * kRingSize; }
  // Returns the bytes of segments that entries have taken since the last expire().
  uint64_t used_bytes() const;
  struct Counts {
    uint64_t entries = 0, delta_entries = 0, lines = 0, taken_back = 0;
  };
  Counts counts() const;

 private:
  struct Segment {
    uint64_t offset = 0;         // in META
    uint64_t end = kFirstEntry;  // of the entries, from `offset`
    uint64_t newest = 0;         // sequence
    bool busy = false;           // a batch appends to it
  };
  static constexpr uint64_t kFirstEntry = 2 * kLineSize;
  static constexpr uint32_t kDepthMax = 64;

  IntentLog(pmem::Region& region, const Geometry& geometry);
  void read_expired();
  void scan(bool salvages);
  void scan_segment(const Segment& segment, bool salvages) SFS_REQUIRES(mutex_);
  bool entry_is_whole(uint64_t offset, uint64_t before, uint64_t room, IntentEntry& entry) const
      SFS_REQUIRES(mutex_);
  void store_expired(uint64_t through);
  bool allocated(uint64_t block) const;
  uint64_t next_sequence(Place& base);
  void end_batch(const Batch& batch);

  pmem::Region& region_;
  const Geometry& geometry_;
  const uint32_t seed_;
  uint64_t seen_ = 0;  // the newest sequence that open() saw
  Damage damage_;
  std::vector<Found> live_;  // ascending
  Mutex expiring_;           // before mutex_
  mutable Mutex mutex_;      // leaf
  std::vector<Segment> segments_ SFS_GUARDED_BY(mutex_);
  uint64_t last_ SFS_GUARDED_BY(mutex_) = 0;     // sequence
  uint64_t cut_ SFS_GUARDED_BY(mutex_) = 0;      // no later entry builds on one up to it
  uint64_t expired_ SFS_GUARDED_BY(mutex_) = 0;  // as META has it
  Counts counts_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::meta
