// SFS_ASSERT aborts the process if an invariant of the program is broken, in release builds too.
// Bad media, messages and user input return EIO or EINVAL instead.
#pragma once

namespace streamfs {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);
}  // namespace streamfs

#define SFS_ASSERT(expr)                          \
  (static_cast<bool>(expr) ? static_cast<void>(0) \
                           : ::streamfs::assertion_failed(#expr, __FILE__, __LINE__))
