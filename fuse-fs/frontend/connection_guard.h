// Ends a mount's connection when the mount daemon is killed.
//
// The kernel ends a connection after the daemon's last thread has ended. A thread that waits in the
// kernel for the write-back of dirty pages (Context::push_dirty) cannot be killed. The write-back
// waits for a WRITE that the killed daemon does not answer, so the thread would never end. A child
// process, the guard, therefore ends the connection when the daemon's first thread dies.
//
// Thread safety: constructor and destructor, the first thread; watch(), any thread.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace streamfs::frontend {

class ConnectionGuard {
 public:
  // Forks the guard. watch() returns the error if that fails. Requires: the calling thread is the
  // only one of the process, and it lives until the process ends.
  ConnectionGuard();
  ~ConnectionGuard();  // ends the guard
  ConnectionGuard(const ConnectionGuard&) = delete;
  ConnectionGuard& operator=(const ConnectionGuard&) = delete;

  // Makes the guard end `connection` (connection_of()) if this process is killed after the return.
  // Requires: called at most once. Errors: those of end_connection(), socketpair(2) and fork(2);
  // EIO if the guard has ended.
  Result<void> watch(unsigned connection);

 private:
  int socket_ = -1;
  pid_t guard_ = -1;
  int failure_ = 0;
};

}  // namespace streamfs::frontend
