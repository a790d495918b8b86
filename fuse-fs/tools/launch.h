// Starts in the foreground or as a daemon, and tells a waiting process that the mount answers.
//
//   background(): the first process waits; its child goes on. The child calls ready() once (the
//   first process exits 0) or exits with a code of its own (the first process exits with the same).
//
// Thread safety: background() and foreground() run before any other thread starts. Any thread may
// call ready(), once.
#pragma once

#include <optional>

namespace streamfs::tools {

class Launch {
 public:
  // Forks. The child gets a Launch, in a session of its own and in the directory /; in the first
  // process this does not return. If the fork fails, it returns what foreground() does.
  static Launch background();
  static Launch foreground() { return Launch(-1); }

  // Tells systemd and the waiting process that the mount answers. A daemon leaves its terminal and
  // logs to the journal from now on, or to syslog if there is no journal.
  void ready();
  // Tells systemd that the process is about to end.
  static void stopping();

 private:
  explicit Launch(int tell_fd) : tell_fd_(tell_fd) {}
  int tell_fd_;
};

// The messages that go to stderr. A program that succeeds is silent unless it was asked to log.
enum class Talk : unsigned char { kWarnings, kInformation, kEverything };
// Sends the log to stderr, or with its fields to the journal if stderr goes there.
void log_to_stderr(Talk talk);

}  // namespace streamfs::tools
