// SFS_ASSERT stops the process when an invariant of our own is broken; on in release too.
// Never for media, messages or user input: those return EIO or EINVAL.
#pragma once

namespace streamfs {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);
}  // namespace streamfs

#define SFS_ASSERT(expr)                          \
  (static_cast<bool>(expr) ? static_cast<void>(0) \
                           : ::streamfs::assertion_failed(#expr, __FILE__, __LINE__))
