// Starting in the foreground or as a daemon, and telling whoever waits that the mount answers.
//
//   background(): the first process waits; its child goes on. The child calls ready() once (the
//   first process exits 0) or exits with a code of its own (the first process exits with the same).
//
// Thread safety: start before any other thread; ready() once, from any thread.
#pragma once

#include <optional>

namespace streamfs::tools {

class Launch {
 public:
  // The child gets a Launch; in the first process this does not return.
  static Launch background();
  static Launch foreground() { return Launch(-1); }

  // The mount answers: systemd and the waiting process are told, a daemon leaves its terminal and
  // logs to syslog from now on.
  void ready();
  // On the way out, for systemd.
  static void stopping();

 private:
  explicit Launch(int tell_fd) : tell_fd_(tell_fd) {}
  int tell_fd_;
};

// What goes to stderr: a program that succeeds is silent unless it was asked to stay and talk.
enum class Talk : unsigned char { kWarnings, kInformation, kEverything };
void log_to_stderr(Talk talk);

}  // namespace streamfs::tools
