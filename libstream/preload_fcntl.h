/* Hints that programs give by fcntl. Thread safety: preload.h. */
#ifndef STREAMFS_LIBSTREAM_PRELOAD_FCNTL_H
#define STREAMFS_LIBSTREAM_PRELOAD_FCNTL_H

/* Forgets the F_SET_FILE_RW_HINT of an earlier file with this descriptor. */
void preload_forget_file_hint(int fd);

#endif
