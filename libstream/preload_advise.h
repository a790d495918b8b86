/* The files that a thread merges, told by its posix_fadvise. Thread safety: one value a thread. */
#ifndef STREAMFS_LIBSTREAM_PRELOAD_ADVISE_H
#define STREAMFS_LIBSTREAM_PRELOAD_ADVISE_H

/* The vStream of the files that this thread merges, stream_rules_merge(); NULL: none.
 * initial-exec: the first use of any other kind of thread-local variable may allocate. */
extern _Thread_local const char* preload_merges __attribute__((tls_model("initial-exec")));

#endif
