// A conditional record is committed ahead of the flush of the data that it names, so that one
// device flush makes both durable. The log keeps one *condition* for each block of that data: the
// checksum that the block must have. A restore reads the blocks. It ends before the first record
// that has a condition which is neither settled nor met.
//
//   WRITTEN           The data is on the device and not flushed. No record names it.
//      │  Engine::commit_ahead(): conditions_of(), one record, one fence
//      │  Journal::commit() → MetadataLog::append() → OpenConditions::add()
//      ▼
//   COMMITTED AHEAD   META has the record. The log has it in memory only.
//      │  LogBarrier::before_flush() → MetadataLog::ship()
//      ▼
//   SHIPPED           A chunk of the log has the record and its conditions. It is not flushed.
//      │  Device::flush(), which covers the data too
//      │  LogBarrier::after_flush() → MetadataLog::made_durable()
//      ▼
//   FLUSHED           Data and record are durable: fsync() returns.
//      │  MetadataLog::write_chunk(): the next chunk's header says "settled up to this record".
//      │  If a caller waits for that: LogBarrier::settle_up_to() → MetadataLog::ship_to_settle()
//      │  Device::flush(), then MetadataLog::made_durable() → OpenConditions::settle()
//      ▼
//   SETTLED           No restore reads the blocks: they are released for overwriting and trimming.
//
// After a power cut the mount ignores META and rebuilds it from the log. By the state at the cut:
//
//   WRITTEN           the old file
//   COMMITTED AHEAD   the old file: the log ends before the record
//   SHIPPED           the new file if chunk and data arrived whole. Otherwise the old file, and no
//                     later record either. No caller was told that one of these records is durable:
//                     the flush that makes it durable would have covered this data too.
//   FLUSHED           the new file: each condition is met. A write that OpenConditions::forbids()
//                     waits or goes to another block; TrimQueue::pass() settles before it reuses
//                     one.
//   SETTLED           the new file, without a look at the blocks
//
// After a kill of the process there is no restore. In WRITTEN the file is the old one, because no
// record names the data. In every later state it is the new one: META has the record and the device
// has the data.
//
// A flush that fails may lose the data of records that are committed ahead or shipped. META names
// that data, so LogBarrier::flush_failed() makes the next mount rebuild META from the log
// (Engine::distrust()).
//
// Snapshots: MetadataLog::write_snapshot_beside() settles no condition by itself; only a chunk
// does. Until then nothing that a restore from the older area checks is overwritten, so a restore
// from either area ends at the same record. write_both_snapshots() stops commits and leaves every
// record in both areas, which settles all conditions.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::meta {

class Checksums;
class Inode;
class LogDevice;
struct DataLabel;
struct SnapshotHeader;

// The content that a block of DATA must have for a record to count.
struct DataCondition {
  BlockNo block;
  // known_checksum() of the CRC32C of `length` bytes and zeroes to the block's end.
  uint32_t checksum;
  uint32_t length;  // bytes of the block inside the file; a later append does not change them
  bool met_by(ConstBytes block_bytes) const;
};

// Returns the conditions of a record that commits `inode` as of `epoch`. `flushed` is the last
// epoch that the device has flushed. A block gets a condition if no flush has covered its data and
// it is new in the file or the file grew over it. Each condition is for the block's present
// content, which the flush of the record covers.
//   nullopt: the inode cannot be committed ahead. More than 64 blocks need a condition, or the
//            extents that the record adds and the blocks that it frees are more than 64 together,
//            or one of the blocks is being overwritten.
// Requires: the inode is locked and its extents are loaded.
std::optional<std::vector<DataCondition>> conditions_of(const Inode& inode,
                                                        const Checksums& checksums, uint64_t epoch,
                                                        uint64_t flushed);

// The conditions that are not settled, by block: a restore may read these blocks.
// Thread safety: any thread; one leaf mutex, which add() takes under a journal ring's mutex.
class OpenConditions {
 public:
  // Adds the conditions of `record`. Requires: the record is not shipped yet.
  void add(std::span<const DataCondition> conditions, TxId record);
  // Drops the conditions of all records up to `through`. Requires: a durable chunk says that they
  // are settled, or both snapshots hold these records.
  void settle(TxId through);
  // Returns whether a block from `first` on has an open condition that `blocks` do not meet.
  bool forbids(BlockNo first, ConstBytes blocks) const;
  // Returns whether a record up to `through` has an open condition.
  bool any_up_to(TxId through) const;

 private:
  struct Open {
    uint64_t sequence = 0;  // of the newest record with a condition on this block
    DataCondition condition{};
  };
  bool none() const { return count_.load(std::memory_order_acquire) == 0; }

  mutable Mutex mutex_;
  std::unordered_map<uint64_t, Open> by_block_ SFS_GUARDED_BY(mutex_);
  std::atomic<uint64_t> count_{0};  // nothing to look up while it is 0
};

// Returns the sequence of the first record in the log after `snapshot` that does not count; more
// than any sequence if all count. A record does not count if it has a condition which is neither
// settled nor met, or if its group is not whole (kGroupGoesOn). A block that cannot be read counts
// as met: the error is reported when the file is read.
// Errors: EIO, the log is damaged; the device's.
Result<uint64_t> replay_end(const DataLabel& label, const SnapshotHeader& snapshot,
                            LogDevice& device);

}  // namespace streamfs::meta
