/* Caches of earlier answers, so that repeated opens need not ask the filesystem. An offer is the
 * request to give a file a label; it is settled once the file has the label or cannot have it.
 *
 * Thread safety: any thread, signal handlers and vfork children; a cache is a table of atomic
 * words. The functions keep errno. An entry counts for a second (folders) or 16 (offers), and again
 * for as long after each 4,096 seconds if nothing replaced it. A wrong entry costs a label and
 * nothing else. */
#ifndef STREAMFS_LIBSTREAM_PRELOAD_KNOWN_H
#define STREAMFS_LIBSTREAM_PRELOAD_KNOWN_H

#include <stdint.h>
#include <sys/types.h>

/* Returns whether the path is absolute and its folder is cached as not on streamfs. Relative paths
 * are not cached, because the working directory may change. */
int preload_folder_is_foreign(const char* path);

/* Caches the folder of a file as not on streamfs. `device` is the file's, which is not streamfs.
 * Does nothing if the folder is on another device, because the file was then opened through a link.
 */
void preload_folder_turned_out_foreign(const char* path, dev_t device);

/* Returns the offer's key in the cache, a hash of the file and the label. Returns 0 if the file has
 * no handle (name_to_handle_at(2)) to tell it from a later file with the same inode number.
 * Requires: `vstream` stays at its address, which identifies the label. */
uint64_t preload_offer(int fd, const char* vstream);
/* Returns whether the offer was settled lately; never for 0. */
int preload_is_settled(uint64_t offer);
/* Caches the offer as settled. Does nothing for 0. */
void preload_settle(uint64_t offer);

#endif
