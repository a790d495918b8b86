/* Sends the hint ioctl (base/wire/hint_ioctl.h) to the mount of an open file.
 *
 * Thread safety: any thread, signal handlers and vfork children. The functions take no lock,
 * allocate nothing and keep errno. */
#ifndef STREAMFS_LIBSTREAM_MOUNT_H
#define STREAMFS_LIBSTREAM_MOUNT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/wire/hint_ioctl.h"

/* Fills in the version of `hint`, sends it and leaves the answer in it.
 * Returns 0; 1 if `fd` is not a regular file or directory on a streamfs mount; or -errno.
 * -EOPNOTSUPP: the mount takes no labels (placement=learned or off): the answer has another label
 * than the requested one, or the ioctl failed with this error. -ENOSYS: the mount is too old for
 * the command. The device number of another filesystem is remembered for one to two seconds, so
 * that a program that opens many files there asks once. It is not remembered for longer, because
 * the kernel may give the number to a streamfs mount later. */
int stream_ask(int fd, struct streamfs_hint* hint);

/* Returns whether a device number is remembered as not streamfs. */
int stream_is_foreign(dev_t device);

/* Returns the seconds of a monotonic clock plus 1, modulo 2^32. */
uint32_t stream_now_seconds(void);

/* Returns the request that gives a file an RWH_WRITE_LIFE_* hint, or clears its label for "not
 * set". */
struct streamfs_hint stream_life_hint(uint32_t life);

/* Returns the RWH_WRITE_LIFE_* hint of the file in an answer: the filesystem keeps such hints as
 * vStreams "rwh-short" and so on. RWH_WRITE_LIFE_NOT_SET for any other label. */
uint32_t stream_life_of(const struct streamfs_hint* answer);

#endif
