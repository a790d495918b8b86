/* The open family. Each is: read the mode only where there is one, call the real one, label. */
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libstream/preload.h"
#include "libstream/preload_label.h"

static int takes_mode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

/* Without the real function: straight to the kernel. */
static int open_by_syscall(int directory, const char* path, int flags, mode_t mode) {
  return (int)syscall(SYS_openat, directory, path, flags, mode);
}

#define MODE_ARGUMENT(mode, flags)    \
  mode_t mode = 0;                    \
  if (takes_mode(flags)) {            \
    va_list arguments;                \
    va_start(arguments, flags);       \
    mode = va_arg(arguments, mode_t); \
    va_end(arguments);                \
  }

int open(const char* path, int flags, ...) {
  MODE_ARGUMENT(mode, flags)
  __typeof__(&open) real = REAL(open);
  const int fd =
      real != NULL ? real(path, flags, mode) : open_by_syscall(AT_FDCWD, path, flags, mode);
  return preload_opened(fd, path, flags);
}

int open64(const char* path, int flags, ...) {
  MODE_ARGUMENT(mode, flags)
  __typeof__(&open64) real = REAL(open64);
  const int fd = real != NULL ? real(path, flags, mode)
                              : open_by_syscall(AT_FDCWD, path, flags | O_LARGEFILE, mode);
  return preload_opened(fd, path, flags);
}

int openat(int directory, const char* path, int flags, ...) {
  MODE_ARGUMENT(mode, flags)
  __typeof__(&openat) real = REAL(openat);
  const int fd = real != NULL ? real(directory, path, flags, mode)
                              : open_by_syscall(directory, path, flags, mode);
  return preload_opened(fd, path, flags);
}

int openat64(int directory, const char* path, int flags, ...) {
  MODE_ARGUMENT(mode, flags)
  __typeof__(&openat64) real = REAL(openat64);
  const int fd = real != NULL ? real(directory, path, flags, mode)
                              : open_by_syscall(directory, path, flags | O_LARGEFILE, mode);
  return preload_opened(fd, path, flags);
}

static const int kCreatFlags = O_WRONLY | O_CREAT | O_TRUNC;

int creat(const char* path, mode_t mode) {
  __typeof__(&creat) real = REAL(creat);
  const int fd =
      real != NULL ? real(path, mode) : open_by_syscall(AT_FDCWD, path, kCreatFlags, mode);
  return preload_opened(fd, path, kCreatFlags);
}

int creat64(const char* path, mode_t mode) {
  __typeof__(&creat64) real = REAL(creat64);
  const int fd = real != NULL ? real(path, mode)
                              : open_by_syscall(AT_FDCWD, path, kCreatFlags | O_LARGEFILE, mode);
  return preload_opened(fd, path, kCreatFlags);
}

/* Programs compiled with _FORTIFY_SOURCE call these. The real ones stop a program that forgot the
 * mode; without them there is nothing to check with. */
int __open_2(const char* path, int flags) {
  __typeof__(&__open_2) real = REAL(__open_2);
  const int fd = real != NULL ? real(path, flags) : open_by_syscall(AT_FDCWD, path, flags, 0);
  return preload_opened(fd, path, flags);
}

int __open64_2(const char* path, int flags) {
  __typeof__(&__open64_2) real = REAL(__open64_2);
  const int fd =
      real != NULL ? real(path, flags) : open_by_syscall(AT_FDCWD, path, flags | O_LARGEFILE, 0);
  return preload_opened(fd, path, flags);
}

int __openat_2(int directory, const char* path, int flags) {
  __typeof__(&__openat_2) real = REAL(__openat_2);
  const int fd =
      real != NULL ? real(directory, path, flags) : open_by_syscall(directory, path, flags, 0);
  return preload_opened(fd, path, flags);
}

int __openat64_2(int directory, const char* path, int flags) {
  __typeof__(&__openat64_2) real = REAL(__openat64_2);
  const int fd = real != NULL ? real(directory, path, flags)
                              : open_by_syscall(directory, path, flags | O_LARGEFILE, 0);
  return preload_opened(fd, path, flags);
}
