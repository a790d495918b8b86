// The state that all request handlers share. The session owns it; libfuse passes it as user data.
// Thread safety: see the members.
#pragma once

#include <fuse_lowlevel.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/io_sizes.h"
#include "base/types.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/data/gate.h"
#include "fuse-fs/frontend/comm_cache.h"
#include "fuse-fs/frontend/dispatch.h"
#include "fuse-fs/frontend/full_disk.h"
#include "fuse-fs/frontend/op_times.h"
#include "fuse-fs/frontend/patience.h"

namespace streamfs::frontend {

class Context {
 public:
  struct Settings {
    std::string control_path;  // value of user.streamfs.control on the root; empty = none
    bool names_wait = false;   // -o dirsync: namespace changes wait for the device too
    bool direct_io = false;    // no page cache; the kernel then sends OPEN and CREATE
    // Outlive the session; null: nothing is counted.
    OpTimes* op_times = nullptr;
    IoSizes* io_sizes = nullptr;
  };
  Context(data::Filesystem& filesystem, Clock& wall_clock, Settings chosen)
      : clock(wall_clock),
        comms(wall_clock),
        settings(std::move(chosen)),
        full_disk(wall_clock),
        fs_(filesystem) {}

  data::Filesystem& fs() { return fs_; }

  InodeId inode(fuse_ino_t ino) const { return ino == FUSE_ROOT_ID ? fs_.root() : InodeId{ino}; }
  fuse_ino_t number(InodeId id) const { return id == fs_.root() ? FUSE_ROOT_ID : id.value; }

  InHand in_hand;
  Clock& clock;
  CommCache comms;
  const Settings settings;
  FullDisk full_disk;
  // Whether the kernel obeys ACLs. INIT sets it, before any other request.
  std::atomic<bool> acls{true};
  // Whether the kernel has a write-back cache, and so sets a file's times itself at a write. INIT
  // sets it.
  std::atomic<bool> kernel_keeps_times{true};
  // Makes the kernel write a file's dirty pages back and waits for that. Returns false if it did
  // not, because the request holds the last entry of its queue. Requires: called in a task of
  // Start::kKernel, or on a thread that serves no requests.
  std::function<bool(InodeId)> push_dirty = [](InodeId) { return true; };
  std::function<void(fuse_conn_info*)> on_init = [](fuse_conn_info*) {};
  Dispatcher dispatcher;  // last: its end runs what was posted

 private:
  data::Filesystem& fs_;
};

inline Context& context_of(fuse_req_t req) {
  return *static_cast<Context*>(fuse_req_userdata(req));
}

// Returns the buffer of a request from a ring, in which the data of its reply goes to the kernel;
// empty if the request is from /dev/fuse.
inline std::span<char> ring_payload([[maybe_unused]] fuse_req_t req) {
#ifdef STREAMFS_FUSE_IO_URING
  char* bytes = nullptr;
  size_t room = 0;
  if (fuse_req_get_payload(req, &bytes, &room, nullptr) == 0) return {bytes, room};
#endif
  return {};
}

// Runs task(context) where `start` says (dispatch.h). The task answers the request. It may run
// twice, so it must not move its captures away. After a shutdown the answer is EIO.
template <typename Task>
void run_from(Start start, fuse_req_t req, Task task) {
  Context& context = context_of(req);
  const std::optional<unsigned> look = context.in_hand.take(start == Start::kKernel);
  context.dispatcher.run(
      start, ring_payload(req).empty() ? From::kDevice : From::kRing,
      [req, &context, watch = OpWatch::in_hand(), look, task = std::move(task)]() mutable {
        {
          InHand::Turn turn(context.in_hand, look);
          if (const data::Gate::Pass pass(context.fs().gate()); pass) {
            task(context);
          } else {
            fuse_reply_err(req, EIO);
          }
          if (handed_off()) return turn.goes_on();
        }
        if (context.settings.op_times != nullptr) watch.end(*context.settings.op_times);
      });
}

// Calls run_from() with start_of() of the operation that this thread has in hand.
template <typename Task>
void run(fuse_req_t req, Task task) {
  const bool names_wait = context_of(req).settings.names_wait;
  run_from(start_of(OpWatch::in_hand().op(), names_wait), req, std::move(task));
}

}  // namespace streamfs::frontend
