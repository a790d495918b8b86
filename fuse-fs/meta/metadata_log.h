// The metadata log keeps enough on the data device to rebuild META if META is lost: fuzzy snapshots
// of META, and every journal record since the older snapshot began.
//
//   journal commit ──sink──► pending (memory) ──ship()──► log blocks ──device flush──► durable
//
// On the device (at the places in the DataLabel) there are two snapshot areas, which grow with
// META, and a ring of log chunks. A chunk is one or more blocks: a LogChunkHeader, then records,
// each followed by its bodies, then conditions, padded. Chunks are numbered consecutively; each
// snapshot names the first chunk after its start. Snapshots leave out superblocks, rings and the
// checksum array: restored data is accepted as read and checksummed again on first read.
//
// Thread safety: any thread. The methods that return a Result do device I/O and may wait, and end()
// waits for them. append(), the journal's sink, does neither.
//
// After a crash: once a device flush has followed ship(), a restore has every record that was
// committed before ship() was called. The caller ships, flushes and settles before it trims or
// reuses a block, so a restored file never shows another file's bytes.
//
// Conditional records: see conditional_record.h.
//
// Data that is written later than its records (follow_data()): ship() writes only records whose
// data is durable on the device. All records that one ship() writes form a *group*, which counts as
// a whole or not at all (kGroupGoesOn), because a record may name a block that a later record of
// the group frees and that was never written. A snapshot counts only once the data of every record
// that its pages may show is durable.
//
// Either snapshot area alone is enough. The log since the older snapshot stays on the device, in
// the order of sequences. A single snapshot settles no conditions; a chunk does, or two snapshots
// that hold every record (write_both_snapshots()). A restore that begins with the older snapshot
// therefore ends at the same record.
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

// The data device as the log uses it: it reads and writes the log's blocks, and reads the blocks
// that conditions name. Synchronous; lengths are whole blocks.
class LogDevice {
 public:
  virtual ~LogDevice() = default;
  virtual Result<void> write(BlockNo first, ConstBytes bytes) = 0;
  virtual Result<void> read(BlockNo first, Bytes bytes) = 0;
  virtual Result<void> flush() = 0;
  // Tells the device that the log will not read these blocks again: their content may change.
  virtual void discard(BlockNo /*first*/, uint64_t /*count*/) {}
};

class MetadataLog {
 public:
  // Attaches to the journal (set_sink). `end` is the LogEnd, packed, of a log that has every
  // committed record; the log goes on there. If `end` is 0 or does not fit the snapshots, the log
  // has to begin(). Requires: no commit since the recovery; all arguments but the label outlive the
  // log. Errors: ENODATA, the filesystem has no log; the device's.
  static Result<std::unique_ptr<MetadataLog>> attach(pmem::Region& region, const Geometry& geometry,
                                                     Journal& journal, LogDevice& device,
                                                     const DataLabel& label, uint64_t end);
  // Attaches, and begins the log anew: attach() with 0 as `end`, then begin().
  static Result<std::unique_ptr<MetadataLog>> start(pmem::Region& region, const Geometry& geometry,
                                                    Journal& journal, LogDevice& device,
                                                    const DataLabel& label);
  ~MetadataLog();  // detaches from the journal; pending records are dropped

  // Takes two snapshots, so that a restore from either area finds this log. ship(),
  // ship_to_settle(), snapshot() and renew() also begin first, if need be.
  // Requires: nothing else on the data device has changed since the mount.
  Result<void> begin();
  // Makes the data of every record committed before the call durable on the device. Returns the
  // last of these records.
  // Requires: it uses no method of the log but durable() and data_is_home(), and waits for no
  // thread that uses another, because the log holds its lock. `commits_stopped`: the log holds a
  // Journal::Stopped, so it does not use the journal's commit(), checkpoint(), quiesce() or stats()
  // either.
  // Errors: EAGAIN, some data cannot be written now; the device's.
  using BringHome = std::function<Result<TxId>(bool commits_stopped)>;
  // Makes the log follow data that is written later than its records. Records stay pending in
  // memory until their data is durable. If bring_home() fails, so does the snapshot that needs it,
  // and with it the call that needs the snapshot; a later call tries again.
  // Requires: called before begin() and the first ship(); no record has conditions.
  void follow_data(BringHome bring_home);
  // Says that the data of every record up to `record` is durable on the device. Takes no lock. A
  // lower record than before has no effect.
  void data_is_home(TxId record);
  bool begun() const { return begun_.load(std::memory_order_acquire); }
  // Returns the LogEnd, packed, for attach(); 0: the log has not begun. Requires: everything is
  // shipped and settled.
  uint64_t end();

  // The state that a flush of the device makes durable. The caller of ship() flushes, and then
  // calls made_durable() with it.
  struct Shipped {
    TxId last;     // every record up to it; no record whose data is yet to be written
    TxId settled;  // conditions up to it are settled
  };
  // Writes every pending record whose data is durable. If the log since the last snapshot would
  // exceed snapshot_due() or the ring has no room, it takes a snapshot first.
  // Errors: those of the device and of bring_home(); the records stay pending. After a failed write
  // of a chunk nothing more is shipped, because the chunk may have arrived and a restore would go
  // on with it.
  Result<Shipped> ship();
  // Does the same. If durable records are not yet settled by the last chunk, it writes one more
  // chunk, without records, that settles them.
  Result<Shipped> ship_to_settle();
  void made_durable(const Shipped& shipped);
  const OpenConditions& conditions() const { return conditions_; }
  TxId durable() const { return TxId{durable_.load(std::memory_order_acquire)}; }
  // Takes the label of a grown META, so that snapshots of it have room. Call it before the geometry
  // is extended.
  void grow(const DataLabel& label);
  // Ships, and then takes one snapshot, which has every record committed before the call.
  Result<void> snapshot();
  // Takes two snapshots. No restore then reads a record that was committed before the call.
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
    bool group_goes_on = false;
  };
  // The share that one chunk takes of the pending records.
  struct Share {
    size_t end;      // the index after its last record
    uint64_t bytes;  // of the chunk
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
  uint64_t ship_target() SFS_REQUIRES(ship_mutex_);
  Result<void> ship_group(uint64_t last_sequence) SFS_REQUIRES(ship_mutex_);
  Result<void> ship_chunks(uint64_t last_sequence) SFS_REQUIRES(ship_mutex_);
  uint64_t end_of_group(uint64_t last_sequence) SFS_REQUIRES(ship_mutex_);
  static Chunk chunk_of(const std::vector<Pending>& records);
  static uint64_t blocks_of(const Chunk& chunk);
  Share share_from(size_t first, uint64_t last_sequence) const SFS_REQUIRES(pending_mutex_);
  std::vector<Pending> take_pending(uint64_t last_sequence);
  bool has_pending(uint64_t last_sequence);
  void put_back(std::vector<Pending> records);
  void drop_pending(TxId through);
  bool is_due(const Chunk& chunk) const SFS_REQUIRES(ship_mutex_);
  bool is_due_before(uint64_t end) const SFS_REQUIRES(ship_mutex_);
  Result<void> write_chunk(Chunk chunk, uint64_t last_sequence) SFS_REQUIRES(ship_mutex_);
  uint64_t place_after(uint64_t head, uint64_t blocks) const SFS_REQUIRES(ship_mutex_);
  bool reaches(uint64_t end) const SFS_REQUIRES(ship_mutex_);
  bool has_room(uint64_t blocks) const SFS_REQUIRES(ship_mutex_);
  Result<void> take_snapshot() SFS_REQUIRES(ship_mutex_);
  SnapshotHeader next_snapshot(TxId as_of) const SFS_REQUIRES(ship_mutex_);
  Result<void> write_snapshot_beside() SFS_REQUIRES(ship_mutex_);
  Result<void> write_both_snapshots() SFS_REQUIRES(ship_mutex_);
  Result<void> bring_data_home(bool commits_stopped) SFS_REQUIRES(ship_mutex_);
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
  BringHome bring_home_ SFS_GUARDED_BY(ship_mutex_);  // empty: data comes before its records
  std::atomic<uint64_t> home_{0};                     // the data of records up to it is durable
  uint64_t next_chunk_ SFS_GUARDED_BY(ship_mutex_) = 1;
  uint64_t head_block_ SFS_GUARDED_BY(ship_mutex_) = 0;   // in the log area, grows for ever
  uint64_t snapshot_at_ SFS_GUARDED_BY(ship_mutex_) = 0;  // head_block_ when the last began
  // head_block_ when the older snapshot began. No chunk overwrites the log from here on.
  uint64_t needed_from_ SFS_GUARDED_BY(ship_mutex_) = 0;
  uint64_t snapshot_blocks_ SFS_GUARDED_BY(ship_mutex_) = 0;  // of the last; 0: not known
  uint64_t snapshot_generation_ SFS_GUARDED_BY(ship_mutex_) = 0;
  uint64_t snapshot_chunk_ SFS_GUARDED_BY(ship_mutex_) = 0;  // next_chunk_ when the last began
  std::atomic<bool> begun_{false};
  uint64_t shipped_ SFS_GUARDED_BY(ship_mutex_) = 0;
  uint64_t settled_ SFS_GUARDED_BY(ship_mutex_) = 0;  // as the last chunk says
  bool snapshotting_ SFS_GUARDED_BY(ship_mutex_) = false;
  Result<void> chunk_failure_ SFS_GUARDED_BY(ship_mutex_);  // the first one, for ever
  std::atomic<uint64_t> durable_{0};
  std::atomic<uint64_t> bytes_written_{0};
};

struct Restored {
  uint64_t snapshot_generation = 0, records = 0;
  std::string damage;        // of the snapshots; empty: none was found
  bool ended_early = false;  // before a record whose data or group had not arrived whole
};
// Rebuilds META from the data device. The geometry is that of the label. The content is that of a
// whole snapshot (choose_snapshot()) and the log after it. The superblocks are written last.
// Errors: ENODATA, there is no log or no snapshot; ENOSPC, the region is smaller than the label's
// META; EIO, the label is damaged, no snapshot is whole, or the log is damaged before its end.
Result<Restored> restore_from_log(pmem::Region& region, const DataLabel& label, LogDevice& device);

}  // namespace streamfs::meta
