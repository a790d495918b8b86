// Tells the writers of a full disk, and keeps what the kernel shows true.
//
// With the write-back cache, write(2) ends in the page cache and WRITE comes later. A WRITE that
// finds no space is a loss: its pages are dropped, and only fsync(2) and close(2) would tell.
//
//   WRITE gets ENOSPC ─► not_stored() ─► loss ─► a thread of this object settles it:
//     1. the inode's cached attributes expire, so the next write(2) asks first: GETATTR with a
//        handle, sent by fuse_cache_write_iter() in fs/fuse/file.c before it takes a lock
//     2. each write(2) that did not ask ends
//     3. all dirty pages of the inode are written back or lost too
//     4. the kernel's size becomes what is stored (cached_size.h)
//   GETATTR with a handle ─► ask() ─► told ENOSPC once, when settled; the loss is over
//
// Each loss is told to one write(2), so a program that overwrites what the file has goes on. A loss
// nobody asks about ends after a while: fsync(2) and close(2) tell it too. Until a second after it
// was told, WRITEs that would leave a hole where pages were dropped are refused: a write(2) that
// did not ask may have been under way.
//
// The kernel may hold more dirty than the free space, so its limit shrinks with the free space.
//
// Thread safety: any thread. The thread of this object pushes dirty pages, so it never replies.
// Crash: memory only.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/types.h"

namespace streamfs::frontend {

class FullDisk {
 public:
  struct Hooks {
    std::function<uint64_t()> free_bytes;
    std::function<void(std::optional<uint64_t> bytes)> limit_dirty;
    std::function<void(InodeId)> expire_attributes;
    std::function<void(InodeId)> wait_for_writers;           // that did not ask
    std::function<void(InodeId)> write_back;                 // and waits for it
    std::function<void(InodeId)> take_error;                 // that close(2) would repeat
    std::function<void(InodeId)> correct_size;               // in the kernel
    std::function<bool(pid_t thread, InodeId id)> corrects;  // whose SETATTR it is
    std::function<bool(InodeId)> is_removed;                 // no name is left
    std::function<void(std::function<void()>)> reply_later;
  };
  explicit FullDisk(Clock& clock) : clock_(clock) {}
  ~FullDisk() { stop(); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

  // Without it nothing happens here. Once.
  void start(Hooks hooks);
  // Ends the thread. When the connection is closed, or the thread may wait for it.
  void stop();

  // Whether WRITEs should keep their order: an earlier one may soon find no space.
  bool is_near() const { return near_.load(std::memory_order_relaxed); }
  // A WRITE from the page cache stored `bytes`.
  void wrote(uint64_t bytes);
  // A WRITE from the page cache found no space.
  void not_stored(InodeId id, uint64_t offset);
  // Where the dropped pages begin, until a second after the loss was told.
  std::optional<uint64_t> lost_from(InodeId id);
  // Whether a loss has not been told yet.
  bool is_losing(InodeId id);
  // A writer asks. False: nothing was lost. Otherwise `tell`, which replies ENOSPC, has run or
  // will.
  bool ask(InodeId id, std::function<void()> tell);
  // Whether a removed file keeps its space for a moment because its loss is being settled.
  bool holds_removed() const;
  // A program changed the size, or the kernel does not know the inode any more.
  void settled_elsewhere(InodeId id);
  // Whether a SETATTR is correct_size's own; then it changes nothing and is answered with the size.
  bool corrects(pid_t thread, InodeId id) const;

 private:
  using Tellers = std::vector<std::function<void()>>;
  struct Loss {
    uint64_t from;
    uint64_t since_ms;  // the last page
    bool queued = false, told = false;
    unsigned rounds = 0;  // of settling, without an end
    Tellers tellers;
  };

  void run();
  void look();
  void settle(InodeId id);
  void write_back_and_correct(InodeId id, bool asked);
  Tellers settled(InodeId id);
  void queue(InodeId id, Loss& loss) SFS_REQUIRES(mutex_);
  bool is_over(const Loss& loss, uint64_t free_bytes) const SFS_REQUIRES(mutex_);
  void drop_old(uint64_t free_bytes) SFS_REQUIRES(mutex_);
  void count() SFS_REQUIRES(mutex_);

  Clock& clock_;
  Hooks hooks_;  // before active_
  std::atomic<bool> active_{false}, near_{false};
  std::atomic<size_t> losses_count_{0};
  std::atomic<uint64_t> settling_{0};                // an inode
  std::atomic<uint64_t> holds_removed_until_ms_{0};  // FORGET comes after the settling
  std::atomic<int64_t> until_look_{0};               // bytes to be written
  std::optional<uint64_t> limit_;                    // the thread's own
  Mutex mutex_;                                      // leaf
  CondVar changed_;
  bool stopping_ SFS_GUARDED_BY(mutex_) = false;
  bool look_due_ SFS_GUARDED_BY(mutex_) = true;
  size_t waiting_ SFS_GUARDED_BY(mutex_) = 0;  // GETATTRs without a reply
  std::unordered_map<InodeId, Loss> losses_ SFS_GUARDED_BY(mutex_);
  std::deque<InodeId> queue_ SFS_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace streamfs::frontend
