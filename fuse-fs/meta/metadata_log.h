// The metadata log: enough on the data device to rebuild META when META is lost (class volatile, or
// asked for). Fuzzy snapshots of META plus every journal record since the older one's start.
//
//   journal commit ──sink──► pending (memory) ──ship()──► log blocks ──device flush──► durable
//
// On the device (places from the DataLabel): two snapshot areas, which grow with META, and a ring
// of log chunks. A chunk is one or more blocks: LogChunkHeader, then records each followed by its
// bodies, padded. Chunks carry a consecutive number; the newest snapshot names the chunk number at
// its start. Snapshots leave out superblocks, rings and the checksum array: restored data is
// accepted as read and checksummed again on first read.
//
// Thread safety: any thread. ship() and snapshot() do device I/O and may wait; append() (the
// journal's sink) does neither.
//
// What a crash leaves: after a device flush that follows ship(), a restore has every record that
// was committed before ship() was called. The caller ships, flushes and settles before it trims or
// reuses a block, so a restored file never shows another file's bytes.
//
// Conditional records: see conditional_record.h.
//
// Either snapshot area alone is enough. The log since the older snapshot stays on the device, in
// the order of sequences, and a condition is settled by a chunk only, never by a snapshot: so a
// restore that begins with the older snapshot ends at the same record.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/conditional_record.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/used_pages.h"
#include "pmem/region.h"

namespace streamfs::meta {

// The data device: the log's blocks, and, to read, those that its conditions name. Synchronous;
// lengths are whole blocks.
class LogDevice {
 public:
  virtual ~LogDevice() = default;
  virtual Result<void> write(BlockNo first, ConstBytes bytes) = 0;
  virtual Result<void> read(BlockNo first, Bytes bytes) = 0;
  virtual Result<void> flush() = 0;
  // Frees blocks that the log will not read: their content may change.
  virtual void discard(BlockNo /*first*/, uint64_t /*count*/) {}
};

class MetadataLog {
 public:
  // Attaches to the journal (set_sink), before the first commit after recovery. If `end` says where
  // everything that was committed ended in the log, it goes on there; 0: it has to begin().
  static Result<std::unique_ptr<MetadataLog>> attach(pmem::Region& region, const Geometry& geometry,
                                                     Journal& journal, LogDevice& device,
                                                     const DataLabel& label, uint64_t end);
  // That, anew, and begin().
  static Result<std::unique_ptr<MetadataLog>> start(pmem::Region& region, const Geometry& geometry,
                                                    Journal& journal, LogDevice& device,
                                                    const DataLabel& label);
  ~MetadataLog();

  // Takes two snapshots, so that a restore from either area finds this log. Every other call below
  // does that first, too. Requires: nothing else on the data device has changed since the mount.
  Result<void> begin();
  // LogEnd, packed, for attach(): with everything shipped and settled.
  uint64_t end();

  // What the log now holds: durable after the caller's device flush; tell it by made_durable().
  struct Shipped {
    TxId last;     // every record up to it
    TxId settled;  // conditions up to it are settled
  };
  // Writes every pending record. Takes a snapshot first when the log since the last one is twice as
  // long as that, or half of the ring. Errors leave the records pending. After a chunk failed to be
  // written nothing more is shipped: the chunk may have arrived, and a restore would go on with it.
  Result<Shipped> ship();
  // The same; with none pending it writes a chunk all the same, if that settles something.
  Result<Shipped> ship_to_settle();
  void made_durable(const Shipped& shipped);
  const OpenConditions& conditions() const { return conditions_; }
  TxId durable() const { return TxId{durable_.load(std::memory_order_acquire)}; }
  // Before the geometry is extended to this label's: snapshots of what is new have room from now.
  void grow(const DataLabel& label);
  // Takes one snapshot of everything committed.
  Result<void> snapshot();
  // Takes two: no restore reads a record that was committed before the call.
  Result<void> renew();
  uint64_t bytes_written() const { return bytes_written_.load(std::memory_order_relaxed); }

 private:
  struct Pending {
    uint64_t sequence;
    std::vector<std::byte> bytes;
    std::vector<DataCondition> conditions;
  };
  struct Chunk {
    std::vector<std::byte> bytes;  // the header's place, then records
    std::vector<LogCondition> conditions;
  };
  MetadataLog(pmem::Region& region, const Geometry& geometry, Journal& journal, LogDevice& device,
              const DataLabel& label);
  void append(TxId tx, ConstBytes record, std::span<const ConstBytes> bodies,
              std::span<const DataCondition> conditions);
  void go_on(const SnapshotHeader& newest, const SnapshotHeader& older, const LogEnd& end)
      SFS_REQUIRES(ship_mutex_);
  Result<void> begin_locked() SFS_REQUIRES(ship_mutex_);
  Result<void> pass_old_log() SFS_REQUIRES(ship_mutex_);
  Result<Shipped> ship_locked() SFS_REQUIRES(ship_mutex_);
  static Chunk chunk_of(const std::vector<Pending>& records);
  static uint64_t blocks_of(const Chunk& chunk);
  std::vector<Pending> take_pending(uint64_t last_sequence);
  void put_back(std::vector<Pending> records);
  void drop_pending(TxId through);
  bool is_due(const Chunk& chunk) const SFS_REQUIRES(ship_mutex_);
  Result<void> write_chunk(Chunk chunk, uint64_t last_sequence) SFS_REQUIRES(ship_mutex_);
  uint64_t place_of(uint64_t blocks) const SFS_REQUIRES(ship_mutex_);
  bool has_room(uint64_t blocks) const SFS_REQUIRES(ship_mutex_);
  Result<void> take_snapshot() SFS_REQUIRES(ship_mutex_);
  SnapshotHeader next_snapshot(TxId as_of) const SFS_REQUIRES(ship_mutex_);
  Result<void> write_snapshot_beside() SFS_REQUIRES(ship_mutex_);
  Result<void> write_both_snapshots() SFS_REQUIRES(ship_mutex_);
  Result<void> give_up_older() SFS_REQUIRES(ship_mutex_);
  uint64_t snapshot_due() const SFS_REQUIRES(ship_mutex_);
  Result<void> snapshot_written(const SnapshotHeader& header, uint64_t from)
      SFS_REQUIRES(ship_mutex_);

  pmem::Region& region_;
  const Geometry& geometry_;
  Journal& journal_;
  LogDevice& device_;
  UsedPages used_pages_;  // one look at a time: under ship_mutex_
  Mutex ship_mutex_;      // before pending_mutex_; held across the log's own device I/O
  Mutex pending_mutex_;   // leaf, after a journal ring's mutex
  std::vector<Pending> pending_ SFS_GUARDED_BY(pending_mutex_);
  OpenConditions conditions_;
  DataLabel label_ SFS_GUARDED_BY(ship_mutex_);
  uint64_t next_chunk_ SFS_GUARDED_BY(ship_mutex_) = 1;
  uint64_t head_block_ SFS_GUARDED_BY(ship_mutex_) = 0;   // in the log area, grows for ever
  uint64_t snapshot_at_ SFS_GUARDED_BY(ship_mutex_) = 0;  // head_block_ when the last began
  // head_block_ when the older of the two began. No chunk overwrites the log from here on.
  uint64_t needed_from_ SFS_GUARDED_BY(ship_mutex_) = 0;
  uint64_t snapshot_blocks_ SFS_GUARDED_BY(ship_mutex_) = 0;  // of the last; 0: not known
  uint64_t snapshot_generation_ SFS_GUARDED_BY(ship_mutex_) = 0;
  uint64_t snapshot_chunk_ SFS_GUARDED_BY(ship_mutex_) = 0;  // next_chunk_ then
  std::atomic<bool> begun_{false};
  uint64_t shipped_ SFS_GUARDED_BY(ship_mutex_) = 0;
  uint64_t settled_ SFS_GUARDED_BY(ship_mutex_) = 0;  // as the last chunk says
  bool snapshotting_ SFS_GUARDED_BY(ship_mutex_) = false;
  Result<void> chunk_failure_ SFS_GUARDED_BY(ship_mutex_);  // the first one, for ever
  std::atomic<uint64_t> durable_{0};
  std::atomic<uint64_t> bytes_written_{0};
};

// Rebuilds META from the data device: geometry from the label, the newest whole snapshot, the log
// after it. The region has at least the label's META size. The superblocks are written last.
// Errors: ENODATA (no log or no snapshot), EIO (no snapshot is whole, or the log is damaged before
// its end).
struct Restored {
  uint64_t snapshot_generation = 0, records = 0;
  std::string damage;        // of the snapshots; empty: none was found
  bool ended_early = false;  // before a record whose data had not arrived
};
Result<Restored> restore_from_log(pmem::Region& region, const DataLabel& label, LogDevice& device);

}  // namespace streamfs::meta
