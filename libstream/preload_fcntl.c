/* fcntl: a program's own hints. On a FUSE file the kernel keeps them for itself, so they are passed
 * on. The kernel is always asked first and its answer stands, but for two repairs on streamfs:
 *
 * - F_SET_RW_HINT of RocksDB before 9.3.1 points to a 4-byte enum; the kernel reads 8 bytes and, as
 *   the stack would have it, refuses. The low 32 bits are the hint.
 * - F_GET/SET_FILE_RW_HINT are gone from Linux 5.18 on; Ceph's BlueStore still uses them. They are
 *   answered per descriptor here. The filesystem keeps one hint a file: the last one set counts. */
#include "libstream/preload_fcntl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libstream/mount.h"
#include "libstream/preload.h"
#include "libstream/preload_explain.h"

#ifndef F_SET_FILE_RW_HINT
#define F_GET_FILE_RW_HINT 1037
#define F_SET_FILE_RW_HINT 1038
#endif

typedef int (*fcntl_function)(int fd, int command, ...);

static int call(fcntl_function real, int fd, int command, void* argument) {
  if (real != NULL) return real(fd, command, argument);
  return (int)syscall(SYS_fcntl, fd, command, argument);
}

static int fail(int code) {
  errno = code;
  return -1;
}

/* The hint given to each descriptor: identity of the file << 8 | hint. An entry of a descriptor
 * that now means another file does not match; descriptors above the table are not remembered. */
enum { kRememberedMax = 4096 };
static _Atomic uint64_t remembered[kRememberedMax];

static uint64_t identity_of(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return 0;
  const uint64_t mixed = (uint64_t)status.st_dev * 0x9e3779b97f4a7c15u ^ (uint64_t)status.st_ino;
  return (mixed * 0xff51afd7ed558ccdu) & ~UINT64_C(0xff);
}

static void remember_file_hint(int fd, uint32_t life) {
  if (fd >= kRememberedMax) return;
  atomic_store_explicit(&remembered[fd], identity_of(fd) | life, memory_order_relaxed);
  atomic_store_explicit(&preload_at_hand.file_hints, 1, memory_order_relaxed);
}

static uint64_t remembered_file_hint(int fd) {
  if (fd >= kRememberedMax) return RWH_WRITE_LIFE_NOT_SET;
  const uint64_t entry = atomic_load_explicit(&remembered[fd], memory_order_relaxed);
  const int same = entry != 0 && (entry & ~UINT64_C(0xff)) == identity_of(fd);
  return same ? entry & 0xff : RWH_WRITE_LIFE_NOT_SET;
}

void preload_forget_file_hint(int fd) {
  if (fd >= kRememberedMax) return;
  atomic_store_explicit(&remembered[fd], 0, memory_order_relaxed);
}

static const char* name_of(uint32_t life) {
  static const char* const kLives[] = {"not set", "none", "short", "medium", "long", "extreme"};
  return kLives[life];
}

/* Tells the filesystem. 0, 1 = not streamfs, -errno. */
static int pass_on(int fd, uint32_t life, const char* rule) {
  struct streamfs_hint hint = stream_life_hint(life);
  const int result = stream_ask(fd, &hint);
  preload_explain(fd, rule, name_of(life), result);
  return result;
}

static int is_streamfs(int fd) {
  struct streamfs_hint hint = {.command = STREAMFS_HINT_QUERY};
  return stream_ask(fd, &hint) == 0;
}

static int set_rw_hint(fcntl_function real, int fd, void* argument) {
  const int result = call(real, fd, F_SET_RW_HINT, argument);
  const int refused = errno;
  if (result != 0 && refused != EINVAL) return result;
  uint32_t life;
  memcpy(&life, argument, sizeof(life)); /* the kernel has read it: it can be read */
  if (life > RWH_WRITE_LIFE_EXTREME) return result;
  const int passed = pass_on(fd, life, "F_SET_RW_HINT");
  if (result == 0) return 0;
  if (passed != 0) return fail(refused);
  uint64_t wide = life;
  call(real, fd, F_SET_RW_HINT, &wide);
  errno = refused;
  return 0;
}

static int set_file_rw_hint(fcntl_function real, int fd, void* argument) {
  const int errno_before = errno;
  const int result = call(real, fd, F_SET_FILE_RW_HINT, argument);
  const int refused = errno;
  if (result != 0 && refused != EINVAL) return result;
  if (!is_streamfs(fd)) return result == 0 ? 0 : fail(refused);
  /* The kernel looks whether the pointer is good; what it thinks of the value does not matter. */
  if (call(real, fd, F_SET_RW_HINT, argument) != 0 && errno != EINVAL) return -1;
  uint32_t life;
  memcpy(&life, argument, sizeof(life));
  if (life > RWH_WRITE_LIFE_EXTREME) return fail(EINVAL);
  pass_on(fd, life, "F_SET_FILE_RW_HINT");
  remember_file_hint(fd, life);
  errno = errno_before;
  return 0;
}

static int get_file_rw_hint(fcntl_function real, int fd, void* argument) {
  const int errno_before = errno;
  const int result = call(real, fd, F_GET_FILE_RW_HINT, argument);
  const int refused = errno;
  if (result == 0 || refused != EINVAL) return result;
  if (!is_streamfs(fd)) return fail(refused);
  /* As above: this says EFAULT for a bad pointer and writes the 8 bytes that the command returns.
   */
  if (call(real, fd, F_GET_RW_HINT, argument) != 0) return -1;
  const uint64_t life = remembered_file_hint(fd);
  memcpy(argument, &life, sizeof(life));
  errno = errno_before;
  return 0;
}

static int dispatch(fcntl_function real, int fd, int command, void* argument) {
  switch (command) {
    case F_SET_RW_HINT:
      return set_rw_hint(real, fd, argument);
    case F_SET_FILE_RW_HINT:
      return set_file_rw_hint(real, fd, argument);
    case F_GET_FILE_RW_HINT:
      return get_file_rw_hint(real, fd, argument);
    default:
      return call(real, fd, command, argument);
  }
}

/* Every command takes at most one argument of at most a pointer's size, as in libc itself. */
int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return dispatch(REAL(fcntl), fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return dispatch(REAL(fcntl64), fd, command, argument);
}
