// Ends a mount's connection when its server is killed.
//
// The kernel ends a connection when the server's last thread has ended. A thread that waits in the
// kernel for the write-back of dirty pages (Context::push_dirty) cannot be killed. It waits for
// WRITEs that the killed server does not answer, so neither would ever end. A process of its own
// notices the death of the server's first thread and ends the connection.
//
// Thread safety: one thread, except where noted.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace streamfs::frontend {

class ConnectionGuard {
 public:
  // Forks the guarding process. If that fails, watch() returns the error. Requires: the process has
  // no other thread, and this one lives as long as the process.
  ConnectionGuard();
  ~ConnectionGuard();  // ends the guarding process
  ConnectionGuard(const ConnectionGuard&) = delete;
  ConnectionGuard& operator=(const ConnectionGuard&) = delete;

  // Ends this connection (connection_of()) if this process is killed from now on. Any thread may
  // call it, once. Errors: those of end_connection(); EAGAIN and ENOMEM of fork().
  Result<void> watch(unsigned connection);

 private:
  int socket_ = -1;
  pid_t guard_ = -1;
  int failure_ = 0;
};

}  // namespace streamfs::frontend
