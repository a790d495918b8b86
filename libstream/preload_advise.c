/* posix_fadvise: what RocksDB says of each file that a thread is about to compact. */
#include "libstream/preload_advise.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libstream/mount.h"
#include "libstream/preload.h"

/* A name of a profile's, or NULL. The header's model does not hold for the definition. */
_Thread_local const char* preload_merges __attribute__((tls_model("initial-exec")));
/* The descriptor that was last said to be read at random, + 1; 0: it is read whole since then. */
static _Thread_local int at_random __attribute__((tls_model("initial-exec")));

/* A table is opened to be read at random. A table that is then read whole is an input of a
 * compaction. A table that is not is an output, looked at after it: the next input begins another.
 */
static void begin_to_read(int fd) {
  const struct preload_config* config = preload_config();
  const int begins = at_random != 0 && at_random != fd + 1;
  at_random = 0;
  if (config == NULL || !config->rules.some_merge) return;
  struct streamfs_hint hint = {.command = STREAMFS_HINT_QUERY};
  if (stream_ask(fd, &hint) != 0) return;
  hint.name[sizeof(hint.name) - 1] = '\0';
  preload_merges = stream_rules_merge(&config->rules, preload_merges, hint.name, begins);
}

static int advised(int result, int fd, int advice) {
  if (result == 0 && advice == POSIX_FADV_NORMAL) begin_to_read(fd);
  if (result == 0 && advice == POSIX_FADV_RANDOM) at_random = fd + 1;
  return result;
}

/* The result is an error's number; errno stays as it is. */
static int advise_by_syscall(int fd, off_t offset, off_t length, int advice) {
  const int errno_before = errno;
  const int code = syscall(SYS_fadvise64, fd, offset, length, advice) == 0 ? 0 : errno;
  errno = errno_before;
  return code;
}

#define DEFINE_FADVISE(name, type)                                               \
  int name(int fd, type offset, type length, int advice) {                       \
    __typeof__(&name) real = REAL(name);                                         \
    return advised(real != NULL ? real(fd, offset, length, advice)               \
                                : advise_by_syscall(fd, offset, length, advice), \
                   fd, advice);                                                  \
  }
DEFINE_FADVISE(posix_fadvise, off_t)
DEFINE_FADVISE(posix_fadvise64, off64_t)
