/* Patterns of names, as profiles write them.
 *
 *   *          any bytes, also none          [0-9a-f]   one byte of a set; [!...] one not of it
 *   ?          one byte                      [...]{n}   so many of a set; {n,m}: n to m of them,
 *   \x         x itself                                 as many as there are
 *
 * Everything else stands for itself; a '/' is never in a name. Time is at most pattern times name,
 * whatever the pattern: a repeated set takes all it can and gives nothing back.
 * Pure functions: any thread, signal handlers. */
#ifndef STREAMFS_LIBSTREAM_GLOB_H
#define STREAMFS_LIBSTREAM_GLOB_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the whole name fits. A pattern that stream_glob_error() refuses fits nothing. */
int stream_glob_fits(const char* pattern, const char* name, size_t length);

/* NULL, or what is wrong with a pattern; `*at` is then how many bytes into it. */
const char* stream_glob_error(const char* pattern, size_t* at);

/* What the pattern says of every name that fits, so that most names need not be tried: its first
 * two bytes, or its last two, or up to four that stand together somewhere in it. 0 = it does not
 * say. */
struct stream_glob_cue {
  unsigned char first[2], last[2], inside[4];
};
struct stream_glob_cue stream_glob_look(const char* pattern);

#ifdef __cplusplus
}
#endif

#endif
