/* The lines that stream-run --explain shows. Thread safety: preload.h. */
#ifndef STREAMFS_LIBSTREAM_PRELOAD_EXPLAIN_H
#define STREAMFS_LIBSTREAM_PRELOAD_EXPLAIN_H

/* How a hint ended; negative: -errno of a mount that refused. */
enum preload_outcome { kHonoured = 0, kNotStreamfs = 1, kKept = 2 };

/* Appends "outcome TAB rule TAB vStream TAB path" to the file STREAMFS_EXPLAIN names; in the path,
 * bytes below 0x20 and backslashes are \ooo. Nothing without STREAMFS_EXPLAIN. */
void preload_explain(int fd, const char* rule, const char* vstream, int outcome);

#endif
