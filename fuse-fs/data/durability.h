// Makes committed records survive a power cut. The step it takes depends on the META class:
//
//   persistent            none: the commit's fence made the record durable
//   synced                msync, shared by all waiting threads
//   volatile, no log      no step exists: a power cut loses META
//   with a metadata log   the records are shipped to the log and the device is flushed. If every
//                         power cut makes the next mount rebuild META from the log, msync follows
//                         later (follow()). Otherwise the caller waits for msync too. This is so if
//                         META is kept twice or is persistent, or if the boot id is unknown.
//
// Thread safety: any thread, unless a method says otherwise. Methods that return a Result may wait
// for a device. Errors: those of META's medium and of DATA; durable_or_read_only() turns them into
// a read-only mount.
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/epoch_stream.h"
#include "fuse-fs/data/health.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::data {

// The code of an error after which the same call may succeed later, and nothing is lost: data in
// the intent log cannot be written to DATA.
inline constexpr int kNotHome = EINPROGRESS;

class Durability {
 public:
  // Returns once every record up to `through` survives a power cut, as far as the META class
  // allows. Concurrent calls share msyncs and flushes.
  virtual Result<void> make_durable(TxId through) = 0;
  // Returns once an fsync may return that covers records up to `through`. With an intent log these
  // records survive a power cut, but not the loss of META.
  virtual Result<void> acknowledge(TxId through) { return make_durable(through); }
  // Returns how long a committed record may wait for the timer's make_durable().
  virtual uint32_t delay_ms() const { return 900; }
  // Returns whether a record that acknowledge() covered waits for it.
  virtual bool pending() const { return false; }
  // Returns whether the timer should make everything durable now, because little room is left.
  virtual bool crowded() const { return false; }
  // Syncs META when no caller waits for it, so that an error of its medium is noticed.
  virtual Result<void> follow() { return {}; }
  // Returns false if make_durable() has nothing to do, so that no timer needs to call it.
  virtual bool waits() const = 0;
  // Returns whether META's medium has lost pages that no make_durable() has dealt with. The next
  // make_durable() gives up the damaged copy, or fails if META is kept once.
  virtual bool damaged() const = 0;

 protected:
  ~Durability() = default;
};

// Ships pending log records with an epoch's flush. Without a metadata log every call does nothing.
class FlushHook {
 public:
  // Begins the log. Call it before the first change of DATA: a restore from the old log needs DATA
  // as the mount found it.
  virtual Result<void> begin_log() { return {}; }
  // Returns whether begin_log() has nothing to do.
  virtual bool log_begun() const { return true; }
  // An epoch calls cut() before it writes cached data out, and before_flush() right before it
  // flushes the device. This writes the pending records, so that the flush makes them durable. If
  // the flush succeeds, the epoch calls after_flush(). `all_written`: no cached data failed to be
  // written. Thread safety: one epoch at a time calls these three.
  virtual void cut() {}
  virtual Result<void> before_flush() { return {}; }
  virtual void after_flush(bool /*all_written*/) {}
  // Call it when a device flush failed. If conditions are open, META may name data that is lost.
  // The next mount then rebuilds META from the log (Engine::distrust()).
  virtual void flush_failed() {}
  // Returns whether some record up to `through` is not durable and goes out with an epoch's flush.
  virtual bool flush_helps(TxId /*through*/) const { return false; }

 protected:
  ~FlushHook() = default;
};

// Guards the blocks that a restore may read (meta/conditional_record.h). Without a log there are no
// such blocks.
class Conditions {
 public:
  // Returns whether a record may be committed ahead of its data's flush.
  virtual bool takes_conditions() const { return false; }
  // Returns whether one of these blocks has an open condition that the new bytes would not meet.
  // After a crash, writing them would make a restore drop the record.
  virtual bool forbids(BlockNo /*first*/, ConstBytes /*blocks*/) const { return false; }
  // Makes these blocks safe to write. If forbids() is true, waits until all conditions of records
  // committed before the call are settled. Otherwise returns at once: a restore may then still read
  // the blocks, and the new bytes meet its conditions.
  virtual Result<void> before_overwrite(BlockNo /*first*/, ConstBytes /*blocks*/) { return {}; }
  // Makes every record up to `through` durable and settles its conditions. Blocks that these
  // records freed may then be reused.
  virtual Result<void> settle(TxId through) = 0;
  // With an intent log, returns the last record that needs no settle(): a caller that is in no
  // hurry waits for the next round. nullopt: only settle() settles.
  virtual std::optional<TxId> settled() const { return std::nullopt; }
  // Returns whether META has an intent log that serves. Overwrites then take new blocks while a
  // promised record is not in the metadata log.
  virtual bool moves_overwrites() const { return false; }

 protected:
  ~Conditions() = default;
};

// The barrier that a filesystem owns. Each of its parts sees only the interface that it calls:
//
//   Maintenance   Durability
//   Epochs        FlushHook, Conditions
//   TrimQueue     Conditions
class DurabilityBarrier : public Durability, public FlushHook, public Conditions {
 public:
  virtual ~DurabilityBarrier() = default;
  virtual uint64_t log_bytes() const { return 0; }
  // Returns once no restore reads a record that was committed before the call.
  virtual Result<void> renew() { return {}; }
  // Gives the log the label of a grown META. Requires: the engine uses no new space yet.
  virtual void grow(const meta::DataLabel&) {}
  // Returns where the next mount continues the log (LogEnd, packed); 0: it has to begin a new one.
  // Requires: a clean unmount, with the last commit settled.
  virtual uint64_t close() { return 0; }
};

// Without a metadata log: Region::sync() does what the META class needs.
std::unique_ptr<DurabilityBarrier> make_region_barrier(pmem::Region& region);
// With the metadata log on the data device. `trims`: the log trims its blocks that no restore
// needs, unless the device is a file.
Result<std::unique_ptr<DurabilityBarrier>> make_log_barrier(pmem::Region& region,
                                                            meta::Engine& engine,
                                                            EpochStream& device,
                                                            const meta::DataLabel& label,
                                                            bool trims);

// Returns `answer`. If it is an error, makes the filesystem read-only (Health::degrade()), unless
// it is kNotHome: that becomes EIO.
Result<void> durable_or_read_only(Result<void> answer, Health& health);
// Calls durability.make_durable(), and makes the filesystem read-only if that fails.
Result<void> make_durable(Durability& durability, TxId through, Health& health);

}  // namespace streamfs::data
