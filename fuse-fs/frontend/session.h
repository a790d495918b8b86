// A mount: the kernel's connection, its threads, and unmounting.
//
//   mount() ──► serve() ── requests … ──► the kernel unmounts ──► serve() returns ──► ~Session
//                 └─ ready() once the mount answers
//
// Thread safety: one thread calls serve(); any other may call request_unmount(). The filesystem
// must outlive the session.
// After a crash: the kernel answers ENOTCONN to all programs until the mount is unmounted.
#pragma once

#include <fuse_lowlevel.h>
#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/frontend/connection_guard.h"
#include "fuse-fs/frontend/context.h"
#include "fuse-fs/frontend/transport.h"

namespace streamfs::frontend {

// Checks whether mounting there can work. Errors: ENOENT; ENOTDIR; ENOTCONN, a dead mount; ENODEV,
// no /dev/fuse; ENOTEMPTY, unless `nonempty`, a mount would hide content or another mount.
Result<void> check_mountpoint(const std::string& mountpoint, bool nonempty);

class Session {
 public:
  struct Options {
    std::string source;                      // the device as `mount` shows it
    std::string mountpoint;                  // absolute
    std::vector<std::string> mount_options;  // fstab's generic ones: "ro", "nodev", …
    bool nonempty = false;                   // mount over content or another mount
    bool allow_other = false;
    Transport transport = Transport::kAuto;
    bool enable_uring = false;       // switch FUSE over io_uring on in the kernel
    uint32_t request_timeout_s = 0;  // the mount ends when a request is this old; 0: never
    bool debug = false;              // libfuse prints every request
    bool io_flusher = false;         // result of become_io_flusher()
    unsigned threads = 16;
    ConnectionGuard* guard = nullptr;  // outlives the session
    Context::Settings context;
  };
  // Errors: those of check_mountpoint(); EACCES and EPERM (may not mount), EBUSY (mountpoint),
  // EINVAL (an option), ENOPROTOOPT (transport=io_uring is unavailable). For a user other than
  // root, ENODEV may also mean that fusermount3 is missing.
  static Result<std::unique_ptr<Session>> mount(data::Filesystem& fs, Clock& clock,
                                                const Options& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Answers requests until the filesystem is unmounted. Calls `ready` on a thread of its own once
  // the mount answers. Errors: libfuse's loop failed; ENOPROTOOPT, libfuse got no rings for
  // transport=io_uring. Requires: it is called once.
  Result<void> serve(const std::function<void()>& ready);
  // Unmounts while serve() goes on answering, so that the kernel can write its dirty pages back. If
  // the mount is still in use after 2 s, has dirty pages written back and detaches the mount all
  // the same. If the mount lives on in another mount namespace, or detached, ends the connection
  // after it has dirty pages written back. Requires: not on a thread that answers requests.
  void request_unmount();

 private:
  Session(data::Filesystem& fs, Clock& clock, Options options);
  Result<void> open();
  void guard() const;
  Wakes wakes();
  void set_up(fuse_conn_info* connection);
  void announce(const std::function<void()>& ready);
  Result<void> confirm_transport();
  void watch_free_space(dev_t device);
  void give_up() const;
  bool try_unmount(bool lazily) const;
  bool goes_on() const;
  void end_detached();

  const Options options_;
  Context context_;
  fuse_session* session_ = nullptr;
  bool mounted_ = false;
  TransportChoice transport_;
  std::atomic<const fuse_conn_info*> kernel_{nullptr};  // the session's, since INIT
  std::optional<Error> refused_;                        // why serve() ended before ready()
  Mutex telling_;                   // held while the kernel is notified about an inode
  std::atomic<bool> ended_{false};  // no thread takes requests any more
  unsigned connection_ = 0;         // the kernel's number of the connection
};

}  // namespace streamfs::frontend
