// What stands between "committed" and "survives a power cut", by META class.
//
//   persistent            nothing: the fence was it
//   synced                msync, shared by everyone who waits
//   volatile, no log      nothing can be done
//   with a metadata log   records shipped to the log, then a device flush; msync follows, and is
//                         waited for only where META is kept twice
//
// Thread safety: any thread. Methods may wait for a device.
#pragma once

#include <memory>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/epoch_stream.h"
#include "fuse-fs/data/group_run.h"
#include "fuse-fs/data/health.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/metadata_log.h"
#include "pmem/region.h"

namespace streamfs::data {

// What a change waits for until it survives a power cut.
class Durability {
 public:
  // Every record up to this one survives a power cut when it returns.
  virtual Result<void> make_durable(TxId through) = 0;
  // Syncs META where no caller waits for that: an error of its own medium shows here at the latest.
  virtual Result<void> follow() { return {}; }
  // False where make_durable() has nothing to do: nobody needs a timer for it.
  virtual bool waits() const = 0;
  // META's medium has lost pages, and nothing was decided about that yet: make_durable() drops the
  // copy, or fails.
  virtual bool damaged() const = 0;

 protected:
  ~Durability() = default;
};

// The part of the metadata log in an epoch's flush. Without a log there is none.
class FlushHook {
 public:
  // Before anything on DATA changes: a restore by the old log would find what is there now.
  virtual Result<void> begin_log() { return {}; }
  // Right before an epoch flushes the device, and right after that flush returned ok: pending
  // records go out with it. One thread at a time.
  virtual Result<void> before_flush() { return {}; }
  virtual void after_flush() {}
  // A flush of the device failed: the data that records are conditional on may be lost.
  virtual void flush_failed() {}
  // Whether an epoch's flush would make records up to this one durable that are not.
  virtual bool flush_helps(TxId /*through*/) const { return false; }

 protected:
  ~FlushHook() = default;
};

// The blocks that a restore may read (meta/conditional_record.h). Without a log there are none.
class Conditions {
 public:
  // Whether records may be conditional: committed first, durable with their data.
  virtual bool takes_conditions() const { return false; }
  // Whether one of these blocks, once written, would not meet its condition.
  virtual bool forbids(BlockNo /*first*/, ConstBytes /*blocks*/) const { return false; }
  // When it returns, no restore reads a block of these that the write changes.
  virtual Result<void> before_overwrite(BlockNo /*first*/, ConstBytes /*blocks*/) { return {}; }
  // Every record up to this one is durable when it returns, and no restore reads the data that one
  // of them names: blocks that they freed may be reused.
  virtual Result<void> settle(TxId through) = 0;

 protected:
  ~Conditions() = default;
};

// What a filesystem owns. Its parts get the interface that they call: Maintenance Durability,
// Epochs FlushHook and Conditions, TrimQueue Conditions.
class DurabilityBarrier : public Durability, public FlushHook, public Conditions {
 public:
  virtual ~DurabilityBarrier() = default;
  virtual uint64_t log_bytes() const { return 0; }
  // Nothing committed before the call is read again by a restore.
  virtual Result<void> renew() { return {}; }
  virtual void grow(const meta::DataLabel&) {}  // META will be as large as this says
  // Clean unmount, after the last commit was settled: where a log goes on (LogEnd), 0: nowhere.
  virtual uint64_t close() { return 0; }
};

// META alone: Region::sync() does what the class asks for.
std::unique_ptr<DurabilityBarrier> make_region_barrier(pmem::Region& region);
// The metadata log on the data device, and META's own sync where it has one.
// `trims`: it trims what it needs no more.
Result<std::unique_ptr<DurabilityBarrier>> make_log_barrier(pmem::Region& region,
                                                            meta::Engine& engine,
                                                            EpochStream& device,
                                                            const meta::DataLabel& label,
                                                            bool trims);

// What a barrier answered: what cannot be made durable makes the filesystem read-only.
Result<void> durable_or_read_only(Result<void> answer, Health& health);
Result<void> make_durable(Durability& durability, TxId through, Health& health);

}  // namespace streamfs::data
