// Answers request lines of the control socket (base/wire/control.h). No sockets here.
// Thread safety: any thread; the filesystem and the meters must outlive it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/frontend/meters.h"

namespace streamfs::frontend {

struct ControlAnswer {
  nlohmann::json body;   // with "ok"
  std::vector<int> fds;  // to send along; borrowed
};

// Returns the answer {"ok": false} with the error's sentence and errno.
ControlAnswer refusal(const Error& error);

// Returns the learning daemon's own user (systemd/streamfs.sysusers.conf), if there is one.
std::optional<uid_t> daemon_user();

// The process at the other end of the socket, as SO_PEERCRED says. Everyone may look, and sees
// numbers and built-in names. Only root and the mount's owner may change anything. They and the
// user classifierd see all names, and that user may attach. An attached peer may report savings.
struct ControlPeer {
  uid_t uid = 0;
  // Takes the place of the learning daemon until this peer hangs up. Returns false if it is taken.
  std::function<bool()> take_daemon_place;
  // Returns whether this peer has that place.
  std::function<bool()> is_daemon = [] { return false; };
};

// Executes one request and returns its answer, or a refusal. May take long (sync, grow, shutdown);
// maintenance and trim work for 5 s at most in one request.
ControlAnswer answer_control(data::Filesystem& fs, Meters& meters, const ControlPeer& peer,
                             std::string_view line);

}  // namespace streamfs::frontend
