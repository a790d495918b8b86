#include "fuse-fs/frontend/privileges.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace streamfs::frontend {

bool in_group(fuse_req_t req, uint32_t gid) {
  if (fuse_req_ctx(req)->gid == gid) return true;
  std::vector<gid_t> groups(NGROUPS_MAX);
  const int found = fuse_req_getgroups(req, static_cast<int>(groups.size()), groups.data());
  if (found < 0) return false;
  groups.resize(std::min(groups.size(), static_cast<size_t>(found)));
  return std::ranges::find(groups, gid) != groups.end();
}

bool owns_mount(uid_t uid) {
  return uid == 0 || uid == geteuid();
}

bool is_privileged(const meta::Attributes& file) {
  return S_ISREG(file.mode) && (file.mode & (S_ISUID | S_ISGID)) != 0;
}

void take_privileges(fuse_req_t req, const meta::Attributes& file, meta::AttributeChange& change) {
  change.clear_suid = true;
  // Without group execution setgid marks mandatory locking, and members of the group keep it. Root
  // stands for CAP_FSETID.
  const bool only_marks = (file.mode & (S_ISGID | S_IXGRP)) == S_ISGID;
  change.clear_sgid = only_marks && fuse_req_ctx(req)->uid != 0 && !in_group(req, file.gid);
}

Result<void> drop_privileges(fuse_req_t req, Context& context, InodeId id) {
  SFS_ASSIGN(const meta::Attributes now, context.fs().attributes(id));
  if (!is_privileged(now)) return {};
  meta::AttributeChange change;
  take_privileges(req, now, change);
  change.ctime = context.clock.now();
  SFS_TRY(context.fs().set_attributes(id, change));
  return {};
}

}  // namespace streamfs::frontend
