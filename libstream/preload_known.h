/* Caches of earlier answers, so that repeated opens need not ask the filesystem.
 *
 * Any thread, signal handlers and vfork children: a cache is a table of atomic words. errno is
 * kept. An entry counts for a second (folders) or 16 (offers), and again for as long after each
 * 4,096 seconds if nothing replaced it. A wrong entry costs a label and nothing else. */
#ifndef STREAMFS_LIBSTREAM_PRELOAD_KNOWN_H
#define STREAMFS_LIBSTREAM_PRELOAD_KNOWN_H

#include <stdint.h>
#include <sys/types.h>

/* Returns whether the path is absolute and its folder is cached as not on streamfs. A relative path
 * never is: its folder may have changed. */
int preload_folder_is_foreign(const char* path);

/* Caches the folder of a file on `device`, which is not streamfs, if the folder is on that device
 * too: the file may have been opened through a link. */
void preload_folder_turned_out_foreign(const char* path, dev_t device);

/* Returns a hash of the file and the label; 0 if the file has no handle (name_to_handle_at(2)), so
 * that it could not be told from a later file with its inode. Requires: `vstream` stays at its
 * address, which identifies the label. */
uint64_t preload_offer(int fd, const char* vstream);
/* Returns whether the offer was settled lately; never for 0. */
int preload_is_settled(uint64_t offer);
/* Caches that the file has the label or cannot have it. Does nothing for 0. */
void preload_settle(uint64_t offer);

#endif
