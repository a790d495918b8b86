/* Asking a streamfs mount something about an open file.
 *
 * Lock-free, no allocation, errno untouched; safe in signal handlers and vfork children. */
#ifndef STREAMFS_LIBSTREAM_MOUNT_H
#define STREAMFS_LIBSTREAM_MOUNT_H

#include "base/wire/hint_ioctl.h"

/* Sends `hint` (its version is filled in here) and leaves the answer in it.
 * Returns 0, 1 when the file is neither a regular file nor a directory on a streamfs mount, -errno.
 * That a device number is not streamfs is remembered for a second: a number can be given to another
 * mount, but a program that opens ten thousand files need not ask ten thousand times. */
int stream_ask(int fd, struct streamfs_hint* hint);

#endif
