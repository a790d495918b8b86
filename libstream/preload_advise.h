/* The files that a thread merges, derived from its posix_fadvise. Thread safety: thread-local. */
#ifndef STREAMFS_LIBSTREAM_PRELOAD_ADVISE_H
#define STREAMFS_LIBSTREAM_PRELOAD_ADVISE_H

/* The vStream of the files that this thread merges, by stream_rules_merge(); NULL: none.
 * initial-exec, because the first use of a thread-local variable of another model may allocate. */
extern _Thread_local const char* preload_merges __attribute__((tls_model("initial-exec")));

#endif
