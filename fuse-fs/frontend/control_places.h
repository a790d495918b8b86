// Limits how many connections to the control socket each user may hold at once. Ordinary users
// cannot shut out root, the user who mounted, or the learning daemon (known by its user, as it was
// at the mount); root can, because root may take every free connection.
// Thread safety: none; the caller locks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <optional>

#include "base/result.h"

namespace streamfs::frontend {

class ControlPlaces {
 public:
  // Limits on connections: in total; for one ordinary user, or the daemon's user; for all ordinary
  // users together, without the daemon's; for the user who mounted.
  static constexpr size_t kMost = 48, kOfOneUser = 8, kOfStrangers = 16, kOfOwner = 16;
  ControlPlaces(uid_t owner, std::optional<uid_t> daemon) : owner_(owner), daemon_(daemon) {}
  // Errors: EUSERS, with the reason as the text for the user who is turned away.
  Result<void> take(uid_t uid);
  void give_back(uid_t uid);

 private:
  bool is_owner(uid_t uid) const { return uid == 0 || uid == owner_; }
  bool is_stranger(uid_t uid) const { return !is_owner(uid) && uid != daemon_; }
  size_t held_by(uid_t uid) const;
  size_t held_by_strangers() const;
  size_t held_in_all() const;

  const uid_t owner_;
  const std::optional<uid_t> daemon_;
  std::map<uid_t, size_t> held_;
};

}  // namespace streamfs::frontend
