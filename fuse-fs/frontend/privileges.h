// The rights of a caller: which names it sees, and which of setuid and setgid its write takes away
// (as the kernel's setattr_should_drop_suidgid() decides).
//
// Thread safety: any thread. Requires: a request that is passed in has not been answered.
#pragma once

#include <fuse_lowlevel.h>
#include <sys/types.h>

#include <cstdint>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/frontend/context.h"
#include "fuse-fs/meta/engine.h"

namespace streamfs::frontend {

// Returns whether the caller is in the group, as its primary or a supplementary one. Returns false
// if the caller's groups are unknown.
bool in_group(fuse_req_t req, uint32_t gid);

// Returns whether this is root or the user who mounted. They see all names.
bool owns_mount(uid_t uid);

// Returns whether this is a regular file that runs as another user or group.
bool is_privileged(const meta::Attributes& file);

// Makes `change` clear the bits of setuid and setgid that `file` loses when this caller writes it.
void take_privileges(fuse_req_t req, const meta::Attributes& file, meta::AttributeChange& change);

// Clears these bits of a file that this caller is about to change, and sets its ctime; does nothing
// if the file is not privileged. Errors: those of attributes() and set_attributes().
Result<void> drop_privileges(fuse_req_t req, Context& context, InodeId id);

}  // namespace streamfs::frontend
