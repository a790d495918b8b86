// The one-fence redo journal, and the only way a home word of META changes.
//
// A transaction collects what an operation changes: patches of home words, masked stores, runs of
// the block bitmaps, bodies written into free slots. commit() writes the record, flushes it and
// the bodies, fences once, and only then stores the home words. The checkpointer later flushes
// those and advances the global watermark: every record of every ring at or below it is home.
//
// Thread safety: commit() may run on many threads at once; each takes one ring. Whoever changes an
// object holds that object's lock from reading it until commit() returns.
//
// What a crash leaves: each transaction happened whole or not at all; one whose commit() returned
// happened. A record that changes words of a body younger than the watermark carries that body's
// sequence as a proof, because its home stores may have spoilt the body's checksum (commit() finds
// these by itself).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::meta {

class Transaction {
 public:
  explicit Transaction(pmem::Region& region) : region_(region) {}

  // A home word's new value; the last value given for an offset counts.
  void patch(uint64_t offset, uint64_t value);
  void patch_words(uint64_t offset, std::span<const uint64_t> values);
  // Bits of a word that other transactions may be changing other bits of.
  void mask(uint64_t offset, uint64_t bits, uint64_t value);
  void run(BlockNo first, uint64_t count, RunKind kind);
  // Stores words into free space now, unlogged; the commit makes them durable. No patch of this
  // transaction may fall into it.
  void body(uint64_t offset, std::span<const uint64_t> words);

  bool empty() const { return patches_.empty() && masks_.empty() && runs_.empty(); }
  uint64_t record_words() const;  // without proofs
  // Room is left for proofs: a transaction that fits() commits.
  bool fits() const { return record_words() + 256 <= kMaxRecordWords && runs_.size() < 1000; }

 private:
  friend class Journal;
  struct Patch {
    uint32_t cell;
    uint32_t mask;
    InodeWords values;
  };
  struct Mask {
    uint64_t offset, bits, value;
  };
  struct Body {
    uint64_t offset, words;
  };
  pmem::Region& region_;
  std::vector<Patch> patches_;
  std::vector<Mask> masks_;
  std::vector<uint64_t> runs_;
  std::vector<Body> bodies_;
};

struct JournalStats {
  uint64_t commits = 0;
  uint64_t commit_fences = 0;  // on the critical path
  uint64_t commit_lines = 0;
  uint64_t checkpoints = 0;
  uint64_t block_words = 0;    // words of the distinct 4 KiB home blocks touched, per checkpoint
};

// Receives every committed record with its bodies, in an order that respects dependencies.
using RecordSink = std::function<void(TxId, ConstBytes record, std::span<const ConstBytes> bodies)>;

class Journal {
 public:
  Journal(pmem::Region& region, const Geometry& geometry);
  ~Journal();  // stops the checkpointer; does not checkpoint

  // Reads the rings and makes every committed record home. Once, before the first commit.
  // Errors: EIO when a committed record points outside what it may change.
  struct Recovery {
    uint64_t records_found = 0;
    uint64_t records_replayed = 0;
  };
  Result<Recovery> recover();

  // Checkpoints by itself from now on; without it rings are checkpointed when full.
  void start_checkpointer();
  void stop_checkpointer();
  void set_sink(RecordSink sink) { sink_ = std::move(sink); }

  // EROFS after a failed device log, ENOSPC never: the rings are emptied as they fill.
  Result<TxId> commit(Transaction& tx);
  // Every record committed before the call is home afterwards.
  void checkpoint();
  TxId watermark() const { return TxId{watermark_.load(std::memory_order_acquire)}; }
  TxId last() const { return TxId{next_sequence_.load(std::memory_order_acquire) - 1}; }
  // Waits until every record with a sequence up to the returned one has been stored home.
  TxId quiesce();
  JournalStats stats() const;

  // Replays one record (header and sections, bodies given) into META: recovery of the log.
  static Result<void> replay(pmem::Region& region, const Geometry& geometry, ConstBytes record);

 private:
  struct Ring;
  struct Scanned;
  class YoungBodies;
  static constexpr uint32_t kYoungShards = 16;

  Ring& my_ring();
  void store_home(std::span<const uint64_t> record);
  std::vector<uint64_t> encode(const Transaction& tx, TxId sequence, uint32_t body_crc,
                               const std::vector<uint64_t>& proofs) const;
  std::vector<uint64_t> find_proofs(const Transaction& tx) const;
  uint32_t body_checksum(const std::vector<Transaction::Body>& bodies) const;
  void flush_home(const std::vector<uint64_t>& lines);
  std::vector<Scanned> scan_rings() const;
  void checkpointer_loop();

  pmem::Region& region_;
  const Geometry& geometry_;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::unique_ptr<YoungBodies> young_;
  std::atomic<uint64_t> next_sequence_{1};
  std::atomic<uint64_t> watermark_{0};
  RecordSink sink_;
  Mutex checkpoint_mutex_;  // before any ring's mutex
  std::atomic<uint64_t> commits_{0}, commit_fences_{0}, commit_lines_{0}, checkpoints_{0},
      block_words_{0};
  Mutex timer_mutex_;  // leaf
  CondVar timer_;
  bool stopping_ SFS_GUARDED_BY(timer_mutex_) = false;
  std::thread checkpointer_;
};

}  // namespace streamfs::meta
