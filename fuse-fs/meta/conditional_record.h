// Conditional records. A record is committed ahead of the flush of the data that it names, so that
// one device flush makes both durable. The log keeps one *condition* for each block of that data:
// the checksum that the block must have. A restore reads the blocks. It ends before the first
// record that has a condition which is neither settled nor met.
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
// What a power cut leaves. META itself is not believed after one, the log is:
//
//   WRITTEN           the old file
//   COMMITTED AHEAD   the old file: the log ends before the record
//   SHIPPED           the new file if chunk and data arrived whole; otherwise the old file, without
//                     any later record. Nobody was told of one: a flush that returned had covered
//                     the data.
//   FLUSHED           the new file: each condition is met, because nobody writes over a block that
//                     OpenConditions::forbids(), and TrimQueue::pass() settles before it reuses one
//   SETTLED           the new file, without a look at the blocks
//
// A kill loses nothing in any state: META and the device keep what they were given. A flush that
// fails may lose the data of records that are committed ahead or shipped. META names that data, so
// LogBarrier::flush_failed() makes the next mount rebuild META from the log (Engine::distrust()).
//
// Snapshots: MetadataLog::write_snapshot_beside() settles nothing, so a restore from either area
// ends at the same record. write_both_snapshots() stops commits and leaves both areas with every
// record, which settles all of them.
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

// What a block of DATA must hold.
struct DataCondition {
  BlockNo block;
  uint32_t checksum;  // known_checksum() of its CRC32C, with zeroes after `length`
  uint32_t length;    // bytes of it that are the file's: an append changes none of them
  bool met_by(ConstBytes block_bytes) const;
};

// Returns the conditions of a record that commits `inode` as of `epoch` while the device has
// flushed `flushed`: one for each block that the record shows, META does not, and no flush has
// covered. They are of what the blocks hold now: the flush that makes the record durable covers
// that.
//   nullopt: the inode cannot be committed ahead. The blocks, or the extents that the record adds
//            and frees, are more than 64, or a block is being overwritten.
// Requires: the inode is locked and its extents are loaded.
std::optional<std::vector<DataCondition>> conditions_of(const Inode& inode,
                                                        const Checksums& checksums, uint64_t epoch,
                                                        uint64_t flushed);

// The conditions that are not settled, by block: a restore may read these blocks.
// Thread safety: any thread; one leaf mutex, after a journal ring's.
class OpenConditions {
 public:
  // Adds those of the record `record`. Requires: the record is not shipped yet.
  void add(std::span<const DataCondition> conditions, TxId record);
  // Drops those of records up to `through`. Requires: a durable chunk says that they are settled.
  void settle(TxId through);
  // Whether a block that is open would not meet its condition if it held these bytes.
  bool forbids(BlockNo first, ConstBytes blocks) const;
  // Whether a record up to `through` has an open condition.
  bool any_up_to(TxId through) const;

 private:
  struct Open {
    uint64_t sequence;  // of the last record
    DataCondition condition;
  };
  bool none() const { return count_.load(std::memory_order_acquire) == 0; }

  mutable Mutex mutex_;
  std::unordered_map<uint64_t, Open> by_block_ SFS_GUARDED_BY(mutex_);
  std::atomic<uint64_t> count_{0};  // nothing to look up while it is 0
};

// Returns the sequence of the first record in the log after `snapshot` that has a condition which
// is neither settled nor met; more than any sequence if there is none. A block that cannot be read
// counts as met: its reader finds that out.
// Errors: EIO, the log is damaged; the device's.
Result<uint64_t> first_unmet(const DataLabel& label, const SnapshotHeader& snapshot,
                             LogDevice& device);

}  // namespace streamfs::meta
