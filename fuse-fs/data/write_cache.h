// The volatile write cache: it keeps new data in RAM until an epoch writes it out, right before the
// device flush. Data of a file that is deleted first is never written. At close() the kernel sends
// a file's dirty pages to a FUSE server, so without this cache a temporary file would reach the SSD
// just before it is deleted.
//
//   put() ──► cached ──write_out()──► being written ──► the device
//               └─discard(), trim()──► never written
//
// read() returns cached data. flush() does not write it: an epoch calls write_out() first
// (epoch.h). A block may be cached only if no committed extent shows its content (`fresh`) or it is
// cached already and not logged.
//
// An fsync has to write out the cached data of all files. A rate limits how much data put() takes,
// so that no fsync waits long. Data that is discarded before it is written, or that its own fsync
// asks for, is not charged to the rate.
//
// Data that cannot be written stays cached, and the next write_out() tries again. Until a flush
// covers it, safe() fails for its inode, which must not be committed.
//
// With an intent log (meta/intent_log.h), an fsync copies the blocks of its inode that are not
// logged yet into the log, and commits them. A logged block is not replaced: a write to it goes to
// another block. If a record frees a logged block before it is written out, it is never written.
// Data that was written out stays readable here until flushed(), so that an fsync meanwhile can log
// it.
//
// Thread safety: any thread. Requires: no put() and write() of one block at the same time.
// After a crash: a power cut or a kill loses all cached data. Logged data is in META.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/forwarding_device.h"
#include "fuse-fs/meta/intent_log.h"

namespace streamfs::data {

class WriteCache final : public blockdev::ForwardingDevice {
 public:
  // Room for `blocks_max` blocks; the kernel provides the memory at first use. 0 caches nothing.
  WriteCache(blockdev::Device& beneath, uint64_t blocks_max, Clock& clock);
  ~WriteCache() override;

  // Caches a copy. Returns false, and the caller writes to the device, if there is no room, the
  // rate is used up, a Still exists, or a block may not be cached. `fresh`: no committed extent
  // shows the blocks.
  bool put(InodeId owner, BlockNo first, ConstBytes bytes, blockdev::WriteTag tag, bool fresh);
  // Returns the charge of the owner's cached data to the rate. Call it when an fsync of `owner`
  // asks for the next flush.
  void asked_for(InodeId owner);
  // Drops the cached data of these blocks; data that is being written meanwhile is not tried again.
  // Requires: no thread reads the blocks before it writes them.
  void discard(BlockNo first, uint64_t count);

  // Returns whether put() would take `fresh` new blocks. Another thread may take the room
  // meanwhile.
  bool takes(uint64_t fresh);
  // Returns whether put() would replace these blocks. Another thread may write them out meanwhile,
  // or log them, unless this one holds their range of the file.
  bool holds(BlockNo first, uint64_t count) const;
  // Reads blocks that are all cached or being written. Returns false if one is neither.
  bool read_cached(BlockNo first, Bytes bytes) const;

  // Returns whether no data is cached or being written.
  bool nothing() const { return entries_.load(std::memory_order_acquire) == 0; }

  // Writes all cached data, and waits for the writes. Returns the first error, after trying all;
  // `failed` gets the owners of the data that could not be written.
  using Owners = std::unordered_set<InodeId>;
  Result<void> write_out(Owners* failed = nullptr) SFS_EXCLUDES(write_out_);
  // Returns the number of the last write_out() of all data that has ended.
  uint64_t written_out() const;
  // Call it after a successful flush of the device, with the number of a write_out() that had ended
  // before the flush began. From then on safe() fails for the owners in `failed` only. Requires:
  // `failed` is from the write_out() before that flush. Without an intent log, one Still existed
  // during both.
  void flushed(Owners failed, uint64_t written_out);
  // Errors: EIO, a write of this inode's cached data failed and no flush has covered the data
  // since.
  Result<void> safe(InodeId owner) const;
  bool all_safe() const;
  // While a Still exists, put() returns false and every write goes to the device.
  class Still {
   public:
    explicit Still(WriteCache& of);
    ~Still();
    Still(const Still&) = delete;
    Still& operator=(const Still&) = delete;

   private:
    WriteCache& of_;
  };

  // ---- With an intent log
  void serve_intent_log() { logs_ = true; }  // before the first put()
  // Says that `block` replaces `old` in its file, so that its log entry can hold the difference.
  // Does nothing unless both are cached and `old` is logged.
  void builds_on(BlockNo block, BlockNo old);
  // Returns how many cached blocks of the owner are not logged.
  uint64_t unlogged(InodeId owner) const;
  // Appends the owner's cached blocks that are not logged, at most `most`, to the batch. Returns
  // them. If the batch is not kept, the caller calls not_logged() with them. Requires: no put() of
  // the owner's blocks, and no other call of log() for it, until the batch is kept or taken back.
  std::vector<BlockNo> log(InodeId owner, uint64_t most, meta::IntentLog::Batch& batch);
  void not_logged(std::span<const BlockNo> blocks);
  // While a Cut exists, blocks that are freed are written out like others if they were cached when
  // it began. A round (intent_barrier.h) then has the data of every record that was committed
  // before the Cut began, and of no record after it that frees some of that data.
  class Cut {
   public:
    explicit Cut(WriteCache& of);
    ~Cut();
    Cut(const Cut&) = delete;
    Cut& operator=(const Cut&) = delete;

   private:
    WriteCache& of_;
  };
  // Returns whether more than three quarters of the room is taken by data that is cached.
  bool crowded() const;

  struct Counts {
    uint64_t cached_blocks = 0;  // now
    uint64_t discarded_blocks = 0;
    uint64_t absorbed_blocks = 0;  // of the discarded ones: logged before
  };
  Counts counts() const;

  // Writes out cached data of these blocks first, and waits for it; its error is passed to `done`.
  // The device therefore has the old data if the new write fails.
  void write(BlockNo first, ConstBytes bytes, blockdev::WriteTag tag,
             blockdev::Completion done) override;
  void read(BlockNo first, Bytes bytes, blockdev::Completion done) override;
  Result<void> trim(BlockNo first, uint64_t count) override;

 private:
  struct Entry {
    InodeId owner;
    uint32_t page = 0;
    blockdev::WriteTag tag;
    bool dead = false;     // discarded while it is being written
    bool failed = false;   // its write failed
    uint64_t written = 0;  // by which write_out(); it is kept until flushed(). 0: it is not written
    meta::IntentLog::Place place = {};  // in the intent log; nowhere: not logged
    uint64_t builds_on = 0;             // the block that it replaces; 0: none
  };
  using Entries = std::map<uint64_t, Entry>;  // by block
  struct Run {
    uint64_t first, count;
    uint32_t page;
    blockdev::WriteTag tag;
  };
  struct Found {
    uint64_t index;  // in the request
    std::vector<std::byte> bytes;
  };
  struct FreeMemory {
    void operator()(std::byte* memory) const;
  };

  Bytes page(uint32_t number) const {
    return {memory_.get() + uint64_t{number} * kBlockSize, kBlockSize};
  }
  void count_entries() SFS_REQUIRES(mutex_);
  static bool touches(const Entries& entries, uint64_t first, uint64_t end);
  bool all_replaceable(uint64_t first, uint64_t count) const SFS_REQUIRES(mutex_);
  bool take_pages(uint64_t count, std::vector<uint32_t>& pages) SFS_REQUIRES(mutex_);
  void give_back(uint32_t page) SFS_REQUIRES(mutex_);
  void refill() SFS_REQUIRES(mutex_);
  void return_allowance(uint64_t blocks) SFS_REQUIRES(mutex_);
  bool replace(BlockNo first, ConstBytes bytes, blockdev::WriteTag tag);
  bool add(InodeId owner, BlockNo first, ConstBytes bytes, blockdev::WriteTag tag);
  void discharge(InodeId owner, uint64_t returned) SFS_REQUIRES(mutex_);
  void drop(uint64_t first, uint64_t end) SFS_REQUIRES(mutex_);
  bool knows(BlockNo first, uint64_t count) const;
  template <typename Maps>
  static auto* newest_in(Maps& cached, Maps& being_written, uint64_t block);
  const Entry* newest(uint64_t block) const SFS_REQUIRES(mutex_);
  Entry* newest(uint64_t block) SFS_REQUIRES(mutex_);
  void drop_written(uint64_t first, uint64_t end, uint64_t by = UINT64_MAX) SFS_REQUIRES(mutex_);
  void list_unlogged() SFS_REQUIRES(mutex_);
  std::vector<Found> find(BlockNo first, uint64_t count) const;
  // `keep`: until flushed(), if there is an intent log.
  enum class Written : uint8_t { kKeep, kDrop };
  Result<void> write_out(uint64_t first, uint64_t end, Owners* failed, Written written)
      SFS_EXCLUDES(write_out_);
  std::vector<Run> begin_writing(uint64_t first, uint64_t end);
  void mark_failed(const Run& run);
  Owners end_writing(Written written);

  const uint64_t pages_max_;
  Clock& clock_;
  std::unique_ptr<std::byte, FreeMemory> memory_;
  Mutex write_out_;      // before mutex_; the thread that writes out holds it across device I/O
  mutable Mutex mutex_;  // before the intent log's, into which log() copies a block; else a leaf
  Entries cached_ SFS_GUARDED_BY(mutex_);
  Entries being_written_ SFS_GUARDED_BY(mutex_);
  std::vector<bool> used_ SFS_GUARDED_BY(mutex_);
  uint64_t free_pages_ SFS_GUARDED_BY(mutex_), cursor_ SFS_GUARDED_BY(mutex_) = 0;
  int stills_ SFS_GUARDED_BY(mutex_) = 0;
  // Blocks that put() may take until the rate stops it.
  uint64_t allowance_ SFS_GUARDED_BY(mutex_), refilled_ms_ SFS_GUARDED_BY(mutex_);
  std::unordered_map<InodeId, uint64_t> charged_ SFS_GUARDED_BY(mutex_);  // blocks
  Owners unsafe_ SFS_GUARDED_BY(mutex_);  // until a flush covers the failed data
  uint64_t discarded_ SFS_GUARDED_BY(mutex_) = 0, absorbed_ SFS_GUARDED_BY(mutex_) = 0;  // blocks
  bool logs_ = false;
  uint64_t write_outs_ SFS_GUARDED_BY(mutex_) = 0;
  // Blocks that put() added, by owner. Some may be logged or gone.
  std::unordered_map<InodeId, std::vector<uint64_t>> unlogged_ SFS_GUARDED_BY(mutex_);
  int cuts_ SFS_GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> freed_in_cut_ SFS_GUARDED_BY(mutex_);  // blocks
  std::atomic<uint64_t> entries_{0};                           // in both maps; mostly 0
};

}  // namespace streamfs::data
