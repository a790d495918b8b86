// Write-behind: new data waits in memory for the flush that makes it durable, and is not written at
// all if its file is gone by then. FUSE has the kernel send what a program wrote when it closes a
// file, so a temporary file would reach the SSD just before it is deleted.
//
//   hold() ──► held ──flush()──► being written ──► the device
//               └─forget(), trim()──► never written
//
// To everyone above it is a device with a volatile cache: a read shows what is held, and a flush
// covers it. Only blocks of which nothing durable is read may be held: fresh ones, and those held
// already. What a flush has to write is bounded by a rate, so that nobody's fsync waits for long
// for what others wrote; what dies unwritten does not count, nor does what its own fsync asks for.
// Thread safety: any thread. hold() and write() of one block at once are the caller's mistake.
// What a crash leaves: see device.h; what is held was never there. Where flush() cannot write, the
// error is its own, and the data stays held and goes out with the next one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/forwarding_device.h"

namespace streamfs::data {

class WriteBehind final : public blockdev::ForwardingDevice {
 public:
  // Memory for `blocks_max` blocks, taken as it is needed; 0: nothing is ever held.
  WriteBehind(blockdev::Device& beneath, uint64_t blocks_max, Clock& clock);
  ~WriteBehind() override;

  // Keeps a copy. False: there is no room, or not all of it may be held: the caller writes it, and
  // what is held of these blocks is written before, so that a write that fails leaves it.
  // fresh: no committed extent shows what these blocks hold.
  bool hold(InodeId owner, BlockNo first, ConstBytes bytes, blockdev::WriteTag tag, bool fresh);
  // The next flush is asked for by its fsync.
  void asked_for(InodeId owner);
  // Nobody reads these blocks again: what is held of them need not be written.
  void forget(BlockNo first, uint64_t count);

  bool nothing() const { return entries_.load(std::memory_order_acquire) == 0; }

  // What flush() does first. An epoch does it before, by itself, and lets nothing be held until its
  // flush has returned: then a flush that fails is the device's.
  Result<void> write_out() SFS_EXCLUDES(write_out_);
  class Still {
   public:
    explicit Still(WriteBehind& of);
    ~Still();
    Still(const Still&) = delete;
    Still& operator=(const Still&) = delete;

   private:
    WriteBehind& of_;
  };

  struct Counts {
    uint64_t held_blocks = 0;  // now
    uint64_t taken_blocks = 0, forgotten_blocks = 0;
  };
  Counts counts() const;

  void write(BlockNo first, ConstBytes bytes, blockdev::WriteTag tag,
             blockdev::Completion done) override;
  void read(BlockNo first, Bytes bytes, blockdev::Completion done) override;
  Result<void> flush() override;
  Result<void> trim(BlockNo first, uint64_t count) override;
  Result<blockdev::IdleWork> prepare_poweroff(const blockdev::IdleLimits& limits) override;

 private:
  struct Entry {
    InodeId owner;
    uint32_t page = 0;
    blockdev::WriteTag tag;
    bool dead = false;  // being written, and nobody reads it again
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
  bool all_held(uint64_t first, uint64_t count) const SFS_REQUIRES(mutex_);
  bool take_pages(uint64_t count, std::vector<uint32_t>& pages) SFS_REQUIRES(mutex_);
  void give_back(uint32_t page) SFS_REQUIRES(mutex_);
  void refill() SFS_REQUIRES(mutex_);
  void return_allowance(uint64_t blocks) SFS_REQUIRES(mutex_);
  bool replace(BlockNo first, ConstBytes bytes, blockdev::WriteTag tag);
  bool add(InodeId owner, BlockNo first, ConstBytes bytes, blockdev::WriteTag tag);
  void drop(uint64_t first, uint64_t end) SFS_REQUIRES(mutex_);
  bool knows(BlockNo first, uint64_t count) const;
  std::vector<Found> find(BlockNo first, uint64_t count) const;
  std::vector<Run> begin_writing();
  void end_writing(bool ok);

  const uint64_t pages_max_;
  Clock& clock_;
  std::unique_ptr<std::byte, FreeMemory> memory_;
  Mutex write_out_;      // before mutex_: one at a time writes out, and may wait for the device
  mutable Mutex mutex_;  // leaf
  Entries held_ SFS_GUARDED_BY(mutex_);
  Entries being_written_ SFS_GUARDED_BY(mutex_);
  std::vector<bool> used_ SFS_GUARDED_BY(mutex_);
  uint64_t free_pages_ SFS_GUARDED_BY(mutex_), cursor_ SFS_GUARDED_BY(mutex_) = 0;
  int stills_ SFS_GUARDED_BY(mutex_) = 0;
  // Blocks that may be taken now: what a flush has to write, at worst.
  uint64_t allowance_ SFS_GUARDED_BY(mutex_), refilled_ms_ SFS_GUARDED_BY(mutex_);
  std::unordered_map<InodeId, uint64_t> charged_ SFS_GUARDED_BY(mutex_);  // of it, since a flush
  Counts counts_ SFS_GUARDED_BY(mutex_);
  std::atomic<uint64_t> entries_{0};  // of both maps: mostly there are none
};

}  // namespace streamfs::data
