// Chooses where a request runs: on the thread that took it from the transport, or on a pool.
//
// Over /dev/fuse there are many such threads, and a request may wait on its own. Over io_uring each
// processor has one ring thread, which takes the requests that programs make on that processor:
//
//   program on CPU k ──► ring thread k ── tries ──► replies
//                              └─ it would wait ──► a worker of CPU k ──► replies
//
// A ring thread stays on its processor if the process may use that processor. A worker is bound to
// the same one if completions of the data device arrive on the caller's processor
// (Wakes::kSameCpu). Otherwise the scheduler may move workers to the processor that takes the
// device's interrupts.
//
// A try that would wait has made only changes that a second run leaves as they are
// (base/waiting.h); the worker then starts over. Device completions arrive on the worker that waits
// for them (fuse-fs/uring/ring.h).
//
//   operation                              start     reason
//   FALLOCATE                              kWorker   it may write zeroes and raise the version
//   a change of names, attributes, xattrs  kWorker   it waits for META after the change
//     or hints, dirsync
//   a WRITE with O_DSYNC (direct_io)       kWorker   it waits for the flush of its data
//   LSEEK                                  kKernel   the kernel keeps dirty pages before it
//   RENAME over a file                     kKernel   the source's dirty pages go first
//   all others                             kTry
//
// A kKernel request waits for other requests, the WRITEs of dirty pages. Such requests have a pool
// of unpinned threads: if they held all transport threads, none would be left to take the WRITEs.
// Over io_uring each also keeps an entry of its processor's queue until it is answered, and a WRITE
// needs one. So push() does nothing for the request that takes a queue's last entry, and that
// request runs on a worker: all threads of the pool may be waiting for a WRITE of this queue. An
// LSEEK then counts the file as data up to the size that the server knows, and returns EAGAIN
// beyond it. After a crash, a RENAME over a file may then leave the name with the data that had
// reached the server.
//
// A thread that pushes dirty pages never replies, and a thread that replies never pushes. The
// kernel hands a ring entry's next request to the thread that sent the last reply of that entry, as
// task work (fuse_uring_send_in_task). A thread that blocks uninterruptibly in the kernel until its
// own WRITE is answered would never run that work. So push() runs on threads of its own, and its
// caller waits in user space.
//
// Thread safety: run(), any thread that took a request; push(), any thread but a transport's;
// expect_rings() and finish(), once, before the first run() and after the last. A task replies
// exactly once, or calls hand_off() instead in a Trying.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/waiting.h"
#include "fuse-fs/frontend/op_times.h"
#include "fuse-fs/frontend/worker_pool.h"

namespace streamfs::frontend {

enum class Start : unsigned char { kTry, kWorker, kKernel };
enum class From : unsigned char { kDevice, kRing };  // /dev/fuse, io_uring
// The processor on which a completion of the data device arrives: the caller's, or any.
enum class Wakes : unsigned char { kSameCpu, kAnyCpu };

// Returns where an operation starts, apart from a RENAME over a file and a WRITE with O_DSYNC,
// which their handlers know. `names_wait`: -o dirsync.
Start start_of(Op op, bool names_wait);

// Ends a try without a reply: the task runs again on a worker.
void hand_off();
bool handed_off();  // returns whether this thread's last try ended so

class Dispatcher {
 public:
  Dispatcher();

  // Makes a pool of workers for each possible processor, for rings with `entries` entries in each
  // queue. kSameCpu binds each pool to its processor; kAnyCpu binds none. Requires: the handler of
  // INIT calls it, before any request comes from a ring.
  void expect_rings(unsigned entries, Wakes wakes);

  // Requires: this thread took the request. `task` can be copied, and called twice.
  template <typename Task>
  void run(Start start, From from, Task&& task) {
    if (from == From::kRing) take_from_ring();
    if (start == Start::kKernel) return run_on_kernel_pool(from, std::forward<Task>(task));
    if (from == From::kDevice) return task();
    if (start == Start::kWorker || !tried(task)) here().post(std::forward<Task>(task));
  }
  // Runs `push`, which makes the kernel write dirty pages back, on a thread for that, and returns
  // when it has returned. Does nothing and returns false in a task that holds the last entry of its
  // queue.
  bool push(const std::function<void()>& push);
  // Returns once every request in hand has its answer. Requires: no run() follows, and the kernel
  // has ended the connection, so that no push() waits.
  void finish();

 private:
  template <typename Task>
  bool tried(Task& task) {
    begin_try();
    const Trying trying;
    task();
    return !handed_off();
  }
  void take_from_ring() const;
  void begin_try() const;
  size_t cpu() const;
  WorkerPool& here() { return *workers_[cpu()]; }
  void run_on_kernel_pool(From from, std::function<void()> task);

  const bool traps_waits_;        // wait_trap.h
  bool schedules_rings_ = false;  // ring_scheduling.h
  unsigned entries_ = 0;
  std::vector<std::unique_ptr<WorkerPool>> workers_;    // by processor; constant after INIT
  std::unique_ptr<std::atomic<unsigned>[]> in_kernel_;  // kKernel requests in hand, by processor
  WorkerPool pushers_;  // ends after the pool whose tasks wait for it
  WorkerPool kernel_;
};

}  // namespace streamfs::frontend
