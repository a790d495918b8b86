// The control socket of one mount: accepts, reads lines, answers (base/wire/control.h).
//
// Thread safety: open() and the destructor run on one thread. A thread accepts, and each connection
// has a thread of its own. A client that finds no free place (control_places.h) gets one answer
// that says so.
// After a crash: the socket's file is still there; the next mount of this filesystem replaces it.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/frontend/control_places.h"
#include "fuse-fs/frontend/control_requests.h"
#include "fuse-fs/frontend/meters.h"

namespace streamfs::frontend {

// Returns /run/streamfs for root, else $XDG_RUNTIME_DIR/streamfs, else /tmp/streamfs-UID.
std::string control_directory();

class ControlServer {
 public:
  // Makes the directory of `path` and listens there. Errors: those of bind(2) and mkdir(2);
  // ENAMETOOLONG; EPERM, other users may change the directory.
  static Result<std::unique_ptr<ControlServer>> open(data::Filesystem& fs, Meters& meters,
                                                     std::string path);
  ~ControlServer();  // ends all connections, after the requests that they have in hand
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  const std::string& path() const { return path_; }

 private:
  struct Connection {
    int fd = -1;
    uid_t uid = 0;
    std::thread thread;
    std::atomic<bool> ended{false};
  };
  ControlServer(data::Filesystem& fs, Meters& meters, std::string path)
      : fs_(fs), meters_(meters), path_(std::move(path)), places_(geteuid(), daemon_user()) {}
  Result<void> listen();
  void accept_all();
  void admit(int fd) SFS_REQUIRES(mutex_);
  static void refuse(int fd, const Error& why);
  void talk(Connection& connection);
  bool reply_to(Connection& connection, const std::string& line);
  void sweep() SFS_REQUIRES(mutex_);

  data::Filesystem& fs_;
  Meters& meters_;
  const std::string path_;
  int listener_ = -1;
  std::thread acceptor_;
  std::atomic<const Connection*> daemon_{nullptr};  // holds the learning daemon's place
  Mutex mutex_;                                     // leaf
  ControlPlaces places_ SFS_GUARDED_BY(mutex_);
  std::list<Connection> connections_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::frontend
