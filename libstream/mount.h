/* Asking a streamfs mount something about an open file.
 *
 * Lock-free, no allocation, errno untouched; safe in signal handlers and vfork children. */
#ifndef STREAMFS_LIBSTREAM_MOUNT_H
#define STREAMFS_LIBSTREAM_MOUNT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/wire/hint_ioctl.h"

/* Sends `hint` (its version is filled in here) and leaves the answer in it.
 * Returns 0, 1 when the file is neither a regular file nor a directory on a streamfs mount, -errno.
 * -EOPNOTSUPP: the mount takes no labels at present (placement=learned or off); it says so itself,
 * or by answering with another label than the one asked for. That a device number is not streamfs
 * is remembered for a second: a number can be given to another mount, but a program that opens ten
 * thousand files need not ask ten thousand times. */
int stream_ask(int fd, struct streamfs_hint* hint);

/* Whether a device number lately turned out not to be streamfs. */
int stream_is_foreign(dev_t device);

/* Seconds since some time, never 0. Wraps around. */
uint32_t stream_now_seconds(void);

/* The question that gives a file an RWH_WRITE_LIFE_* hint; "not set" takes back what was said. */
struct streamfs_hint stream_life_hint(uint32_t life);

/* The RWH_WRITE_LIFE_* hint that a file has according to an answer, RWH_WRITE_LIFE_NOT_SET if its
 * label is none. The filesystem keeps such hints as vStreams of their own, "rwh-short" and so on.
 */
uint32_t stream_life_of(const struct streamfs_hint* answer);

#endif
