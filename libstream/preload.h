/* libstream_preload.so: hints for programs that know nothing of streamfs.
 *
 * The library overrides the C library's functions that open files, fcntl and posix_fadvise. It
 * labels a file that is opened for writing if a rule matches its name. It passes a program's own
 * F_SET_RW_HINT on to the filesystem, because the kernel does not for FUSE. From posix_fadvise it
 * learns which files a thread is about to merge. It passes all other calls on unchanged.
 *
 * The program's results, errno and file descriptors are those it would have without the library,
 * but for the two repairs on streamfs that preload_fcntl.c makes. A hint that fails has no effect
 * on the program. There is no lock and no allocation: the library is safe in threads, signal
 * handlers, after fork and in vfork children. A crash leaves nothing.
 *
 * Environment, read once, set by stream-run:
 *   STREAMFS_PROFILE  the profile of rules, by name or path; unset: "default"; unknown: no rules.
 *                     streamfs-profiles(5) lists the folders of profiles
 *   STREAMFS_VSTREAM  one vStream for every file opened for writing, instead of rules
 *   STREAMFS_EXPLAIN  absolute path of a file that gets a line for each hint, preload_explain.h
 */
#ifndef STREAMFS_LIBSTREAM_PRELOAD_H
#define STREAMFS_LIBSTREAM_PRELOAD_H

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/wire/hint_ioctl.h"
#include "libstream/rules.h"

/* The functions that the library overrides; preload.map lists the same names. */
/* clang-format off */
#define PRELOAD_FUNCTIONS(X)                                                         \
  X(open) X(open64) X(openat) X(openat64) X(creat) X(creat64)                        \
  X(__open_2) X(__open64_2) X(__openat_2) X(__openat64_2)                            \
  X(fopen) X(fopen64) X(freopen) X(freopen64) X(tmpfile) X(tmpfile64)                \
  X(mkstemp) X(mkstemp64) X(mkostemp) X(mkostemp64)                                  \
  X(mkstemps) X(mkstemps64) X(mkostemps) X(mkostemps64)                              \
  X(fcntl) X(fcntl64) X(posix_fadvise) X(posix_fadvise64)
/* clang-format on */

/* System headers declare these only under _FORTIFY_SOURCE. */
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
int __openat64_2(int directory, const char* path, int flags);

#define PRELOAD_ENUMERATOR(name) kReal_##name,
enum preload_function { PRELOAD_FUNCTIONS(PRELOAD_ENUMERATOR) kRealCount };
#undef PRELOAD_ENUMERATOR

/* Returns the next library's function of that name. NULL if there is none, or while this thread is
 * inside dlsym (whose malloc may open files); the caller then makes the system call or fails with
 * ENOSYS. */
typedef void (*preload_pointer)(void);
preload_pointer preload_look_up(enum preload_function function);

/* The data that every open reads, in few cache lines. */
struct preload_at_hand {
  _Atomic(const struct preload_config*) config; /* NULL: not read yet */
  _Atomic int file_hints;                       /* an F_SET_FILE_RW_HINT was remembered */
  _Atomic(preload_pointer) reals[kRealCount];   /* functions found so far; else NULL */
};
extern struct preload_at_hand preload_at_hand;

static inline preload_pointer preload_real(enum preload_function function) {
  const preload_pointer known =
      atomic_load_explicit(&preload_at_hand.reals[function], memory_order_acquire);
  return known != NULL ? known : preload_look_up(function);
}
#define REAL(name) ((__typeof__(&name))preload_real(kReal_##name))

/* Fields that every open reads come first. */
struct preload_config {
  char vstream[sizeof(((struct streamfs_hint*)0)->name)];
  struct stream_rules rules;
  char explain[PATH_MAX];
};

/* Reads the configuration at the first call. Returns NULL while another thread reads it; the caller
 * then gives no hint. */
const struct preload_config* preload_read_config(void);
static inline const struct preload_config* preload_config(void) {
  const struct preload_config* known =
      atomic_load_explicit(&preload_at_hand.config, memory_order_acquire);
  return known != NULL ? known : preload_read_config();
}

#endif
