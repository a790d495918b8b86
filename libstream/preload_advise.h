/* The label for files that a thread makes by merging others, as RocksDB's compactions do.
 * Thread safety: thread-local. */
#ifndef STREAMFS_LIBSTREAM_PRELOAD_ADVISE_H
#define STREAMFS_LIBSTREAM_PRELOAD_ADVISE_H

/* The vStream name for the output of this thread's present merge; NULL: none. It is derived by
 * stream_rules_merge() when the thread calls posix_fadvise() for an input, and used when the thread
 * opens a file. The name belongs to the loaded profiles, which are never unloaded.
 * The TLS model is initial-exec, because the first use of a variable of another model may allocate.
 */
extern _Thread_local const char* preload_merges __attribute__((tls_model("initial-exec")));

#endif
