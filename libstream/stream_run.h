/* The two ways in which stream-run runs its command. Thread safety: single-threaded. */
#ifndef STREAMFS_LIBSTREAM_STREAM_RUN_H
#define STREAMFS_LIBSTREAM_STREAM_RUN_H

/* base/exit_codes.h has the same codes for C++. The last two are those of env(1). */
enum { kExitUsage = 64, kExitNoPath = 66, kExitIo = 70, kExitCannotRun = 126, kExitNotFound = 127 };

/* Runs the command, waits for it, shows what was hinted on standard error and returns the command's
 * exit status. If a signal ended the command, the same signal ends this program. */
int run_and_explain(char* const command[]);

/* Executes the command in this process. Returns only if that fails, with the exit status. */
int run_only(char* const command[]);

#endif
