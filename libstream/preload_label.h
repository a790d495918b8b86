/* Labels for the files that a program opens. Thread safety: preload.h. */
#ifndef STREAMFS_LIBSTREAM_PRELOAD_LABEL_H
#define STREAMFS_LIBSTREAM_PRELOAD_LABEL_H

#include <fcntl.h>

/* Labels the file just opened as `fd` with STREAMFS_VSTREAM or, if that is unset, the vStream of
 * the rule that matches. Drops the hint remembered for an earlier file with this descriptor. Keeps
 * errno. */
void preload_label(int fd, const char* path, int flags);

/* Calls preload_label() if the file may be written. Returns fd. Inline: a read-only open costs two
 * tests. */
static inline int preload_opened(int fd, const char* path, int flags) {
  const int may_write = (flags & (O_ACCMODE | O_CREAT)) != 0 && (flags & O_PATH) == 0;
  if (fd >= 0 && may_write) preload_label(fd, path, flags);
  return fd;
}

#endif
