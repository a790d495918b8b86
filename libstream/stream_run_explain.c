/* Running the command, and the report at its end. A kill -9 of stream-run leaves the file of lines
 * in /tmp. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libstream/preload_explain.h"
#include "libstream/stream_run.h"

int run_only(char* const command[]) {
  execvp(command[0], command);
  const int code = errno;
  fprintf(stderr, "stream-run: %s: %s\n", command[0], strerror(code));
  return code == ENOENT ? kExitNotFound : kExitCannotRun;
}

static volatile sig_atomic_t child_pid;

static void forward(int number) {
  const int errno_before = errno;
  if (child_pid > 0) kill(child_pid, number);
  errno = errno_before;
}

/* The terminal sends its signals to the command itself; what others send to us is meant for it. */
static void handle_signals(struct sigaction before[2]) {
  static const int kForwarded[] = {SIGTERM, SIGHUP};
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  action.sa_handler = forward;
  for (size_t i = 0; i < 2; ++i) sigaction(kForwarded[i], &action, NULL);
  action.sa_handler = SIG_IGN;
  sigaction(SIGINT, &action, &before[0]);
  sigaction(SIGQUIT, &action, &before[1]);
}

static void restore_signals(const struct sigaction before[2]) {
  sigaction(SIGINT, &before[0], NULL);
  sigaction(SIGQUIT, &before[1], NULL);
}

/* waitpid()'s status of the command, -1 if there is none. */
static int run_and_wait(char* const command[]) {
  sigset_t held, mask;
  sigemptyset(&held);
  sigaddset(&held, SIGTERM);
  sigaddset(&held, SIGHUP);
  sigaddset(&held, SIGINT);
  sigaddset(&held, SIGQUIT);
  sigprocmask(SIG_BLOCK, &held, &mask); /* until child_pid is known */
  const pid_t child = fork();
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &mask, NULL);
    _exit(run_only(command));
  }
  struct sigaction before[2];
  child_pid = child;
  handle_signals(before);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  child_pid = 0;
  restore_signals(before);
  return status;
}

static int compare_lines(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

/* The file's lines, sorted. Frees nothing on failure: the report is short then, and the program
 * ends anyway. free(*text), free(*lines). */
static size_t read_lines(FILE* file, char** text, char*** lines) {
  size_t size = 0, count = 0;
  *text = NULL;
  *lines = NULL;
  rewind(file);
  if (getdelim(text, &size, '\0', file) < 0) return 0;
  for (const char* at = *text; (at = strchr(at, '\n')) != NULL; ++at) ++count;
  *lines = calloc(count + 1, sizeof(char*));
  if (*lines == NULL) return 0;
  char* rest = *text;
  for (size_t i = 0; i < count; ++i) (*lines)[i] = strsep(&rest, "\n");
  qsort(*lines, count, sizeof(char*), compare_lines);
  return count;
}

static const char* words_for(int outcome) {
  switch (outcome) {
    case kHonoured:
      return "honoured";
    case kNotStreamfs:
      return "not honoured: not on streamfs";
    case kKept:
      return "kept: has a label of its own";
    default:
      return strerror(-outcome);
  }
}

static void print_line(char* line, size_t times) {
  const int outcome = (int)strtol(strsep(&line, "\t"), NULL, 10);
  const char* rule = strsep(&line, "\t");
  const char* vstream = strsep(&line, "\t");
  const char* path = line;
  if (rule == NULL || vstream == NULL || path == NULL) return;
  fprintf(stderr, "  %s: %s, by %s: %s", path, vstream, rule, words_for(outcome));
  if (times > 1) fprintf(stderr, " (%zu times)", times);
  fputc('\n', stderr);
}

static void report(FILE* file) {
  char* text;
  char** lines;
  const size_t count = read_lines(file, &text, &lines);
  fprintf(stderr, "stream-run: %zu hint%s\n", count, count == 1 ? "" : "s");
  for (size_t i = 0; i < count;) {
    size_t times = 1;
    while (i + times < count && strcmp(lines[i], lines[i + times]) == 0) ++times;
    print_line(lines[i], times);
    i += times;
  }
  free(lines);
  free(text);
}

/* Ends as the command ended. A second core file would tell nothing. */
static int end_like(int status) {
  if (status == -1) return kExitIo;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

int run_and_explain(char* const command[]) {
  char path[] = "/tmp/stream-run-XXXXXX";
  const int fd = mkostemp(path, O_CLOEXEC);
  FILE* file = fd < 0 ? NULL : fdopen(fd, "r");
  if (file == NULL || setenv("STREAMFS_EXPLAIN", path, 1) != 0) {
    fprintf(stderr, "stream-run: --explain: %s: %s\n", path, strerror(errno));
    return kExitIo;
  }
  const int status = run_and_wait(command);
  report(file);
  fclose(file);
  unlink(path);
  return end_like(status);
}
