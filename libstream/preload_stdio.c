/* Streams and temporary files: inside libc they open files without passing through open(). */
#include <errno.h>
#include <stdlib.h>

#include "libstream/preload.h"
#include "libstream/preload_label.h"

enum { kWriting = O_RDWR | O_CREAT, kModeLettersMax = 7 };

/* "r" alone only reads. The part after a comma names a character set. */
static int flags_of(const char* mode) {
  if (mode[0] == 'w' || mode[0] == 'a') return kWriting;
  for (int i = 0; i < kModeLettersMax && mode[i] != '\0' && mode[i] != ','; ++i) {
    if (mode[i] == '+') return kWriting;
  }
  return O_RDONLY;
}

static FILE* stream_opened(FILE* stream, const char* path, int flags) {
  if (stream != NULL) preload_opened(fileno(stream), path, flags);
  return stream;
}

/* These have no system call to fall back on. They are missing only if somebody opens a stream while
 * a symbol is being looked up, which the C library itself never does. */
static FILE* no_stream(void) {
  errno = ENOSYS;
  return NULL;
}

static int no_file(void) {
  errno = ENOSYS;
  return -1;
}

#define DEFINE_FOPEN(name)                                           \
  FILE* name(const char* restrict path, const char* restrict mode) { \
    __typeof__(&name) real = REAL(name);                             \
    if (real == NULL) return no_stream();                            \
    return stream_opened(real(path, mode), path, flags_of(mode));    \
  }
DEFINE_FOPEN(fopen)
DEFINE_FOPEN(fopen64)

/* Without a path only the mode of the same file changes. */
#define DEFINE_FREOPEN(name)                                                                \
  FILE* name(const char* restrict path, const char* restrict mode, FILE* restrict stream) { \
    __typeof__(&name) real = REAL(name);                                                    \
    if (real == NULL) return no_stream();                                                   \
    FILE* reopened = real(path, mode, stream);                                              \
    return path == NULL ? reopened : stream_opened(reopened, path, flags_of(mode));         \
  }
DEFINE_FREOPEN(freopen)
DEFINE_FREOPEN(freopen64)

#define DEFINE_TMPFILE(name)                              \
  FILE* name(void) {                                      \
    __typeof__(&name) real = REAL(name);                  \
    if (real == NULL) return no_stream();                 \
    return stream_opened(real(), "", O_RDWR | O_TMPFILE); \
  }
DEFINE_TMPFILE(tmpfile)
DEFINE_TMPFILE(tmpfile64)

/* DEFINE_MKSTEMP(name, parameters, arguments): the path is known only afterwards. */
#define DEFINE_MKSTEMP(name, parameters, arguments)        \
  int name parameters {                                    \
    __typeof__(&name) real = REAL(name);                   \
    if (real == NULL) return no_file();                    \
    return preload_opened(real arguments, path, kWriting); \
  }
DEFINE_MKSTEMP(mkstemp, (char* path), (path))
DEFINE_MKSTEMP(mkstemp64, (char* path), (path))
DEFINE_MKSTEMP(mkostemp, (char* path, int flags), (path, flags))
DEFINE_MKSTEMP(mkostemp64, (char* path, int flags), (path, flags))
DEFINE_MKSTEMP(mkstemps, (char* path, int suffix), (path, suffix))
DEFINE_MKSTEMP(mkstemps64, (char* path, int suffix), (path, suffix))
DEFINE_MKSTEMP(mkostemps, (char* path, int suffix, int flags), (path, suffix, flags))
DEFINE_MKSTEMP(mkostemps64, (char* path, int suffix, int flags), (path, suffix, flags))
