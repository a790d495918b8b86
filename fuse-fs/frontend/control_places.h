// Who may hold how many connections to the control socket at once, so that no user shuts out root,
// the user who mounted or the learning daemon (which is known by its user, as it was at the mount).
// Thread safety: the caller's lock.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <optional>

#include "base/result.h"

namespace streamfs::frontend {

class ControlPlaces {
 public:
  // Of all; of one user who is neither root nor the one who mounted; of all such users but the
  // daemon's; of the one who mounted. What these leave is for root, who may have all.
  static constexpr size_t kMost = 48, kOfOneUser = 8, kOfStrangers = 16, kOfOwner = 16;
  ControlPlaces(uid_t owner, std::optional<uid_t> daemon) : owner_(owner), daemon_(daemon) {}
  // EUSERS, with the reason for whoever is turned away.
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
