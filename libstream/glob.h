/* Matches names against the patterns of profiles.
 *
 *   *          any bytes, also none          [0-9a-f]   one byte of a set; [!...] one not in it
 *   ?          one byte                      [...]{n}   n bytes of a set; {n,m}: n to m, as many
 *   \x         x itself                                 as match, without backtracking
 *
 * All other characters stand for themselves; '/' is an error. The time is bounded by the length of
 * the pattern times that of the name.
 * Pure functions: any thread, signal handlers. */
#ifndef STREAMFS_LIBSTREAM_GLOB_H
#define STREAMFS_LIBSTREAM_GLOB_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether the pattern matches the whole name. Requires: stream_glob_error() accepts it. */
int stream_glob_fits(const char* pattern, const char* name, size_t length);

/* Returns NULL, or a sentence for a wrong pattern; `*at` is then the offset of the error in it. */
const char* stream_glob_error(const char* pattern, size_t* at);

/* Bytes that every matching name has, to reject most names quickly: its first two, its last two,
 * and up to four consecutive ones anywhere in it. A byte of 0 is unknown. */
struct stream_glob_cue {
  unsigned char first[2], last[2], inside[4];
};
struct stream_glob_cue stream_glob_look(const char* pattern);

#ifdef __cplusplus
}
#endif

#endif
