// Reports ENOSPC to programs that write to a full disk through the page cache.
//
// With the write-back cache, write(2) ends in the page cache and the WRITE comes later. A WRITE
// that finds no space is a loss: its pages are dropped. Without this class, only fsync(2) and
// close(2) would report it.
//
//   WRITE gets ENOSPC ─► not_stored() ─► a thread of this object lets the inode's attributes expire
//   the next write(2) ─► GETATTR with a handle, sent by fuse_cache_write_iter() in fs/fuse/file.c
//                     ─► ask() ─► ENOSPC, once
//
// Each loss is reported to at most one write(2), so later overwrites of the file succeed. Until the
// report, no reply lets the kernel cache the file's attributes. WRITEs that fail within a second
// after the report were under way, and belong to the same loss. Until that second is over, a WRITE
// that would leave a hole where pages were dropped is refused.
//
// A write(2) that asks 30 s after the last lost page, or 1 s after it if there is space again, is
// not told: it ends the loss. A loss that no write(2) asks about stays until forget().
//
// The kernel may hold more dirty pages than there is free space, so this object lowers the kernel's
// limit of dirty pages as the free space shrinks.
//
// Expiring attributes takes no page lock. The thread therefore never waits for a WRITE, and no page
// that the kernel holds is dropped.
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <unordered_map>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/types.h"

namespace streamfs::frontend {

class FullDisk {
 public:
  // The thread of this object calls all hooks. ask() calls free_bytes() as well, in its own thread.
  struct Hooks {
    std::function<uint64_t()> free_bytes;
    std::function<void(std::optional<uint64_t> bytes)> limit_dirty;
    std::function<void(InodeId)> expire_attributes;
  };
  explicit FullDisk(Clock& clock) : clock_(clock) {}
  ~FullDisk() { stop(); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

  // Starts the thread. Without start(), no loss is kept. Requires: it is called once at most.
  void start(Hooks hooks);
  // Ends the thread, after a hook that it runs. From then on no new loss is kept.
  void stop();

  // Takes note that a WRITE from the page cache stored `bytes`.
  void wrote(uint64_t bytes);
  // Takes note that a WRITE from the page cache found no space.
  void not_stored(InodeId id, uint64_t offset);
  // Returns whether a WRITE at `offset` lies behind pages that were dropped. The caller refuses it
  // if `offset` is also past the end of the stored file, because it would leave a hole.
  bool is_beyond_loss(InodeId id, uint64_t offset) const;
  // Returns whether a loss is still to be reported to a write(2).
  bool is_losing(InodeId id) const;
  // Takes note of a write(2) that asks for space. Returns true if it gets ENOSPC.
  bool ask(InodeId id);
  // Ends a loss, because a program changed the size or the kernel has forgotten the inode.
  void forget(InodeId id);

 private:
  void run();
  void look();
  struct Loss {
    uint64_t from;      // the lowest offset of a dropped page
    uint64_t since_ms;  // when the last page was lost, or the loss was reported
    bool told = false;
  };
  bool is_over(const Loss& loss, uint64_t free_bytes) const;
  void count() SFS_REQUIRES(mutex_);

  Clock& clock_;
  Hooks hooks_;  // before active_
  std::atomic<bool> active_{false};
  std::atomic<size_t> losses_count_{0};
  std::atomic<int64_t> until_look_{0};  // bytes to be written until the next look()
  std::optional<uint64_t> limit_;       // used by the thread only
  mutable Mutex mutex_;                 // leaf
  CondVar changed_;
  bool stopping_ SFS_GUARDED_BY(mutex_) = false;
  bool look_due_ SFS_GUARDED_BY(mutex_) = true;
  std::unordered_map<InodeId, Loss> losses_ SFS_GUARDED_BY(mutex_);
  std::deque<InodeId> to_expire_ SFS_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace streamfs::frontend
