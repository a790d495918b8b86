/* Writes the lines that stream-run --explain reports. Thread safety: preload.h. */
#ifndef STREAMFS_LIBSTREAM_PRELOAD_EXPLAIN_H
#define STREAMFS_LIBSTREAM_PRELOAD_EXPLAIN_H

/* The outcome of a hint. A negative value is the -errno of the mount. */
enum preload_outcome { kHonoured = 0, kNotStreamfs = 1, kKept = 2 };

/* Appends "outcome TAB rule TAB vStream TAB path" to the existing file that STREAMFS_EXPLAIN names.
 * In the path, a byte below 0x20, 0x7f or a backslash is written as \ooo. Does nothing if
 * STREAMFS_EXPLAIN is unset. Keeps errno. */
void preload_explain(int fd, const char* rule, const char* vstream, int outcome);

#endif
