// Answers in libfuse's terms. Each reply_*() answers the request exactly once.
// Thread safety: pure functions, apart from the reply itself.
#pragma once

#include <fuse_lowlevel.h>
#include <sys/stat.h>

#include "base/result.h"
#include "fuse-fs/frontend/context.h"
#include "fuse-fs/meta/engine.h"

namespace streamfs::frontend {

// Only the kernel changes files, so its caches stay valid until it changes them itself.
inline constexpr double kForever = 1e9;  // seconds

// Returns how long the kernel may cache a file's attributes. It may not while the file is setuid or
// setgid, because a WRITE takes the bits away and its answer has no attributes. Nor may it while a
// loss of the file's data on a full disk is to be reported, because the next write(2) has to ask
// (full_disk.h).
double attributes_timeout(const Context& context, const meta::Attributes& attributes);
struct stat to_stat(const Context& context, const meta::Attributes& attributes);
fuse_entry_param to_entry(const Context& context, const meta::Attributes& attributes);

void reply_status(fuse_req_t req, const Result<void>& done);
// Answers with the error's errno, and logs EIO and EUCLEAN. Hands the request off instead if the
// error is would_wait() (dispatch.h).
void reply_error(fuse_req_t req, const Error& error);
// Answers with an entry. The caller took a reference of the inode for it; the reference is given
// back if the kernel does not take the answer.
void reply_entry(fuse_req_t req, Context& context, const Result<meta::Attributes>& found);
void reply_attributes(fuse_req_t req, const Context& context,
                      const Result<meta::Attributes>& found);

}  // namespace streamfs::frontend
