/* What an earlier open found out, so that the next one of the same need not ask.
 *
 * Any thread, signal handlers, vfork children: an entry is one word in a table of fixed size, and
 * one that two threads write at once is one of the two. errno is untouched. Forgotten by itself
 * after some seconds; being wrong costs a label, never more. */
#ifndef STREAMFS_LIBSTREAM_PRELOAD_KNOWN_H
#define STREAMFS_LIBSTREAM_PRELOAD_KNOWN_H

#include <stdint.h>
#include <sys/types.h>

/* Whether a path is absolute and its folder was lately not on streamfs. A relative path's folder
 * may be another one by now. */
int preload_folder_is_foreign(const char* path);

/* Remembers that of the folder of a file on a foreign device, if the folder is on it too: a link
 * may lead elsewhere. */
void preload_folder_turned_out_foreign(const char* path, dev_t device);

/* A number for "this file was offered this label"; 0: the file cannot be told from one that gets
 * its inode later. The label is a string that stays where it is: a profile's, or the
 * configuration's. */
uint64_t preload_offer(int fd, const char* vstream);
int preload_is_settled(uint64_t offer);
void preload_settle(uint64_t offer);

#endif
