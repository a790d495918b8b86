/* libstream_preload.so: hints for programs that know nothing of streamfs.
 *
 * It stands in for the C library's ways of opening a file, for fcntl and posix_fadvise. A file that
 * is opened for writing and whose name a rule knows is labelled; a program's own F_SET_RW_HINT is
 * passed on to the filesystem, which the kernel does not do for FUSE; posix_fadvise tells which
 * files a thread is about to merge. Everything else goes straight through.
 *
 * What holds: the program's results, errno and file descriptors are those it would have without the
 * library; a hint that fails is forgotten. No lock and no allocation, hence safe in threads, signal
 * handlers, after fork and in vfork children; no state outlives a crash, for there is none.
 *
 * Environment, read once, set by stream-run:
 *   STREAMFS_PROFILE  which rules: the name of a profile, or the path of one; unset: "default";
 *                     unknown: none. Where profiles lie: streamfs-profiles(5)
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

/* Everything the library stands in for; preload.map lists the same names. */
/* clang-format off */
#define PRELOAD_FUNCTIONS(X)                                                         \
  X(open) X(open64) X(openat) X(openat64) X(creat) X(creat64)                        \
  X(__open_2) X(__open64_2) X(__openat_2) X(__openat64_2)                            \
  X(fopen) X(fopen64) X(freopen) X(freopen64) X(tmpfile) X(tmpfile64)                \
  X(mkstemp) X(mkstemp64) X(mkostemp) X(mkostemp64)                                  \
  X(mkstemps) X(mkstemps64) X(mkostemps) X(mkostemps64)                              \
  X(fcntl) X(fcntl64) X(posix_fadvise) X(posix_fadvise64)
/* clang-format on */

/* Declared by headers only under _FORTIFY_SOURCE. */
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
int __openat64_2(int directory, const char* path, int flags);

#define PRELOAD_ENUMERATOR(name) kReal_##name,
enum preload_function { PRELOAD_FUNCTIONS(PRELOAD_ENUMERATOR) kRealCount };
#undef PRELOAD_ENUMERATOR

/* The next library's function of that name. NULL while this thread is looking one up (malloc may
 * open files below dlsym) or where there is none: the caller then does without. */
typedef void (*preload_pointer)(void);
preload_pointer preload_look_up(enum preload_function function);

/* What each open looks at lies together: the kernel leaves little of a cache. */
struct preload_at_hand {
  _Atomic(const struct preload_config*) config; /* NULL until it has been read */
  _Atomic int file_hints;                       /* whether there ever was an F_SET_FILE_RW_HINT */
  _Atomic(preload_pointer) reals[kRealCount];   /* what was found so far */
};
extern struct preload_at_hand preload_at_hand;

static inline preload_pointer preload_real(enum preload_function function) {
  const preload_pointer known =
      atomic_load_explicit(&preload_at_hand.reals[function], memory_order_acquire);
  return known != NULL ? known : preload_look_up(function);
}
#define REAL(name) ((__typeof__(&name))preload_real(kReal_##name))

/* What each open looks at comes first. */
struct preload_config {
  char vstream[sizeof(((struct streamfs_hint*)0)->name)];
  struct stream_rules rules;
  char explain[PATH_MAX];
};

/* NULL until it has been read once. */
const struct preload_config* preload_read_config(void);
static inline const struct preload_config* preload_config(void) {
  const struct preload_config* known =
      atomic_load_explicit(&preload_at_hand.config, memory_order_acquire);
  return known != NULL ? known : preload_read_config();
}

#endif
