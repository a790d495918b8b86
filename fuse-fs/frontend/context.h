// The state that all request handlers share. The session owns it; libfuse passes it as user data.
// Thread safety: see the members.
#pragma once

#include <fuse_lowlevel.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <optional>
#include <string>

#include "base/assert.h"
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

  // For methods that never wait for a device.
  data::Filesystem& fs() { return fs_; }
  // For methods that may wait for a device. Requires: not on a ring thread.
  data::Filesystem& fs_may_wait() {
    SFS_ASSERT(!waiting_forbidden());
    return fs_;
  }
  // Returns the Wait of a change of the namespace.
  Wait names() const { return settings.names_wait ? Wait::kDevice : Wait::kNever; }

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
  // Makes the kernel write a file's dirty pages back and waits for that. Requires: called in a task
  // of Wait::kKernel, or on a thread that serves no requests.
  std::function<void(InodeId)> push_dirty = [](InodeId) {};
  std::function<void(fuse_conn_info*)> on_init = [](fuse_conn_info*) {};
  Dispatcher dispatcher;  // last: its end runs what was posted

 private:
  data::Filesystem& fs_;
};

inline Context& context_of(fuse_req_t req) {
  return *static_cast<Context*>(fuse_req_userdata(req));
}

// Runs task(context), which answers the request, on the thread that `wait` asks for. After a
// shutdown the answer is EIO.
template <typename Task>
void run(fuse_req_t req, Wait wait, Task task) {
  Context& context = context_of(req);
  const std::optional<unsigned> look = context.in_hand.take(wait == Wait::kKernel);
  context.dispatcher.run(
      wait, [req, &context, watch = OpWatch::in_hand(), look, task = std::move(task)]() mutable {
        {
          const InHand::Turn turn(context.in_hand, look);
          if (const data::Gate::Pass pass(context.fs().gate()); pass) {
            task(context);
          } else {
            fuse_reply_err(req, EIO);
          }
        }
        if (context.settings.op_times != nullptr) watch.end(*context.settings.op_times);
      });
}

}  // namespace streamfs::frontend
