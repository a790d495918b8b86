// The one-fence redo journal. All home words of META change through it, except superblocks and the
// words of the checksum array; a free unit of the heap is zeroed without it as well.
//
// A transaction collects what an operation changes: patches of home words, masked stores, runs of
// the block bitmaps, bodies written into free slots. commit() writes the record, flushes it and
// the bodies, fences once, and only then stores the home words. The checkpointer later flushes
// those and advances the global watermark: every record of every ring at or below it is home.
//
// Thread safety: many threads may run commit() at once. Each thread has a ring, by its number; two
// threads of one ring wait for each other. A caller that changes an object holds that object's lock
// from reading it until commit() returns.
//
// After a crash: each transaction has happened whole or not at all; a transaction whose commit()
// returned has happened.
//
// Proofs: recovery believes a record whose bodies have their checksum. A later record B may store
// home words into a body of an earlier record A, and A's checksum is then wrong. B therefore
// carries A's sequence as a *proof* that A was committed, unless the watermark has passed A.
// commit() finds the proofs by itself.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <memory_resource>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread_counters.h"
#include "base/types.h"
#include "fuse-fs/meta/conditional_record.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/home_blocks.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::meta {

class Transaction {
 public:
  explicit Transaction(pmem::Region& region) : region_(region) { patches_.reserve(4); }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  // Without a commit no valid object depends on the flushed lines, so they need no fence.
  ~Transaction() { flushed_.leave(); }

  // Gives a home word a new value. The last value given for an offset counts.
  void patch(uint64_t offset, uint64_t value);
  void patch_words(uint64_t offset, std::span<const uint64_t> values);
  // Changes some bits of a word. Other transactions may change other bits of the word at the same
  // time, by masks too.
  void mask(uint64_t offset, uint64_t bits, uint64_t value);
  void run(BlockNo first, uint64_t count, RunKind kind);
  // Stores words into free space now, unlogged; the commit makes them durable. No patch of this
  // transaction may fall into it.
  void body(uint64_t offset, std::span<const uint64_t> words);

  // Lets the commit's fence make these lines durable, too.
  void fences(pmem::Flushed lines) { flushed_ += std::move(lines); }

  // Adds a condition for the sink. It is not in the record (conditional_record.h).
  void condition(DataCondition condition) { conditions_.push_back(condition); }

  bool empty() const { return patches_.empty() && masks_.empty() && runs_.empty(); }
  uint64_t record_words() const;  // without proofs
  // Returns whether the transaction can be committed. Room for proofs is counted.
  bool fits() const {
    return record_words() + 256 <= kMaxRecordWords && patches_.size() < 200 &&
           masks_.size() < 200 && bodies_.size() < 200 && runs_.size() < 1000;
  }

 private:
  friend class Journal;
  std::vector<uint64_t> encode(std::span<const uint64_t> proofs) const;  // header words zero
  RecordHeader header(size_t proofs) const;                              // the counts
  struct Patch {
    explicit Patch(uint32_t number) : cell(number) {}
    uint32_t cell;
    uint32_t mask = 0;
    InodeWords values;  // of the mask's words
  };
  struct Mask {
    uint64_t offset, bits, value;
  };
  struct Body {
    uint64_t offset, words;
  };
  pmem::Region& region_;
  pmem::Flushed flushed_;
  // Enough memory for most transactions: the reserved cells, and a little of the other lists.
  std::array<std::byte, 2048> first_memory_;
  std::pmr::monotonic_buffer_resource memory_{first_memory_.data(), first_memory_.size()};
  std::pmr::vector<Patch> patches_{&memory_};
  std::pmr::vector<Mask> masks_{&memory_};
  std::pmr::vector<uint64_t> runs_{&memory_};
  std::pmr::vector<Body> bodies_{&memory_};
  std::pmr::vector<DataCondition> conditions_{&memory_};
};

struct JournalStats {
  uint64_t commits = 0;
  uint64_t commit_fences = 0;  // on the critical path
  uint64_t commit_lines = 0;
  uint64_t checkpoints = 0;
  // For comparison with a file system that writes whole blocks: the words of the 4 KiB blocks that
  // each commit touched, and of the distinct blocks that were touched between two checkpoints.
  uint64_t block_words = 0;
  uint64_t checkpoint_block_words = 0;
};

// Receives every committed record with its bodies and conditions, in an order that respects
// dependencies. Runs inside commit(): it must be quick and must not call the journal.
using RecordSink = std::function<void(TxId, ConstBytes record, std::span<const ConstBytes> bodies,
                                      std::span<const DataCondition> conditions)>;

struct Recovery {
  uint64_t records_found = 0;      // whole records above the watermark
  uint64_t records_replayed = 0;   // the committed ones
  uint64_t records_completed = 0;  // replayed records that a copy of META lacked
  uint64_t last_sequence = 0;
};
// Reads the rings, makes every committed record home and raises the watermark past all of them.
// If META is kept twice, it reads both copies, and gives each copy the records and bodies that only
// the other has, before any home word changes.
// Errors: EIO, a committed record points outside what it may change, the watermark is no journal's,
// or pages of every copy of META are lost.
// After a crash during recovery: the next recovery does it again.
Result<Recovery> recover_journal(pmem::Region& region, const Geometry& geometry);

class Journal {
 public:
  // Requires: recover_journal() has run, so no ring has a record above the watermark.
  Journal(pmem::Region& region, const Geometry& geometry);
  ~Journal();  // stops the checkpointer; does not checkpoint

  // Starts a thread that checkpoints at intervals. With it or without, a commit that leaves its
  // ring half full checkpoints, too.
  void start_checkpointer();
  void stop_checkpointer();
  void set_sink(RecordSink sink) { sink_ = std::move(sink); }  // before the first commit

  // Commits the transaction. If its ring is full, or it needs more proofs than a record holds, a
  // checkpoint comes first. Errors: E2BIG, the transaction does not fit() one record.
  Result<TxId> commit(Transaction& tx);
  // Makes every record that was committed before the call home and durable, in all rings, and
  // raises the watermark.
  void checkpoint();
  TxId watermark() const { return TxId{watermark_.load(std::memory_order_acquire)}; }
  // Returns the last sequence that was given out; its record may not be committed yet.
  TxId last() const { return TxId{next_sequence_.load(std::memory_order_acquire) - 1}; }
  // Stops commits while it lives. All earlier records have reached the sink and are stored home.
  // Its thread must not call commit(), checkpoint(), quiesce() or stats() meanwhile: they would
  // wait for it.
  class Stopped {
   public:
    explicit Stopped(Journal& journal);
    ~Stopped();
    Stopped(const Stopped&) = delete;
    Stopped& operator=(const Stopped&) = delete;

   private:
    Journal& journal_;
  };
  // Waits for the commits under way, and returns the last sequence given out before. Every record
  // up to it has reached the sink and is stored home (not flushed).
  TxId quiesce();
  // Counts. Costs a look at every record since the last checkpoint, and may wait for a checkpoint.
  JournalStats stats();

 private:
  struct Ring;
  class YoungBodies;
  struct Place {
    uint64_t sequence, offset, words;
  };

  Ring& my_ring();
  bool commit_in(Ring& ring, Transaction& tx, TxId& committed, bool& crowded);
  void checkpoint_unless_busy();
  void checkpoint_locked() SFS_REQUIRES(checkpoint_mutex_);
  std::vector<uint64_t> find_proofs(const Transaction& tx) const;
  void publish(Ring& ring, std::span<const uint64_t> record, uint64_t at, Transaction& tx);
  void tell_sink(TxId tx, std::span<const uint64_t> record, const Transaction& transaction);
  std::vector<Place> unfinished_up_to(uint64_t sequence);
  // Adds the lines that a record changes at home. Returns the words of their blocks.
  uint64_t add_home_lines(const Place& place, std::vector<uint64_t>& lines) const;
  void make_home_durable(std::vector<uint64_t> lines);
  void store_watermark(uint64_t sequence);
  void checkpointer_loop();

  pmem::Region& region_;
  const Geometry& geometry_;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::unique_ptr<YoungBodies> young_;
  alignas(kLineSize) std::atomic<uint64_t> next_sequence_{1};  // every commit's
  alignas(kLineSize) std::atomic<uint64_t> watermark_{0};
  RecordSink sink_;
  Mutex checkpoint_mutex_;  // before any ring's mutex
  enum Counter : uint8_t {
    kCommits,
    kCommitFences,
    kCommitLines,
    kCheckpoints,
    kBlockWords,
    kCheckpointBlockWords,
    kCounters,
  };
  ThreadCounters<kCounters> counters_;
  Mutex timer_mutex_;  // leaf
  CondVar timer_;
  bool stopping_ SFS_GUARDED_BY(timer_mutex_) = false;
  std::thread checkpointer_;
};

}  // namespace streamfs::meta
