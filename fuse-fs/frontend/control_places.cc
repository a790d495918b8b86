#include "fuse-fs/frontend/control_places.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>

#include "base/assert.h"
#include "base/result.h"

namespace streamfs::frontend {

static_assert(ControlPlaces::kOfStrangers + ControlPlaces::kOfOneUser + ControlPlaces::kOfOwner <
              ControlPlaces::kMost);

size_t ControlPlaces::held_by(uid_t uid) const {
  const auto found = held_.find(uid);
  return found == held_.end() ? 0 : found->second;
}

size_t ControlPlaces::held_by_strangers() const {
  size_t sum = 0;
  for (const auto& [uid, count] : held_) sum += is_stranger(uid) ? count : 0;
  return sum;
}

size_t ControlPlaces::held_in_all() const {
  size_t sum = 0;
  for (const auto& [uid, count] : held_) sum += count;
  return sum;
}

Result<void> ControlPlaces::take(uid_t uid) {
  const size_t most = uid == 0 ? kMost : is_owner(uid) ? kOfOwner : kOfOneUser;
  if (uid != 0 && held_by(uid) >= most) {
    return Error{EUSERS, fmt::format("user {} holds {} connections to the control socket, which is "
                                     "as many as one may",
                                     uid, most)};
  }
  if (is_stranger(uid) && held_by_strangers() >= kOfStrangers) {
    return Error{EUSERS, fmt::format("users hold {} connections to the control socket; the others "
                                     "are for root and who mounted this",
                                     kOfStrangers)};
  }
  if (held_in_all() >= kMost)
    return Error{EUSERS, fmt::format("all {} connections to the control socket are taken", kMost)};
  ++held_[uid];
  return {};
}

void ControlPlaces::give_back(uid_t uid) {
  const auto found = held_.find(uid);
  SFS_ASSERT(found != held_.end());
  if (--found->second == 0) held_.erase(found);
}

}  // namespace streamfs::frontend
