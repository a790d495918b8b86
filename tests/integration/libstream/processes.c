/* Opens files to write from threads, signal handlers, and children of fork, vfork and exec.
 * usage: processes FOLDER */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 64, kFilesPerThread = 50 };

static char vfork_path[4096], exec_path[4096], signal_path[4096], constructor_path[4096];
static const char* folder;

static void* open_many(void* argument) {
  const long thread = (long)argument;
  for (int i = 0; i < kFilesPerThread; ++i) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/thread-%ld-%d-journal", folder, thread, i);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    unsigned long long life = RWH_WRITE_LIFE_LONG;
    if (fd < 0 || write(fd, "x", 1) != 1 || fcntl(fd, F_SET_RW_HINT, &life) != 0) abort();
    close(fd);
  }
  return NULL;
}

static void on_signal(int number) {
  (void)number;
  const int fd = open(signal_path, O_RDWR | O_CREAT, 0600);
  if (fd < 0) abort();
  close(fd);
}

static void wait_for(const char* what, pid_t child) {
  int status = -1;
  if (child <= 0 || waitpid(child, &status, 0) != child) abort();
  printf("%s: %d\n", what, status);
}

static void children(void) {
  pid_t child = fork();
  if (child == 0) {
    open_many((void*)1000L);
    _exit(3);
  }
  wait_for("fork", child);
  child = vfork();
  if (child == 0) {
    const int fd = open(vfork_path, O_RDWR | O_CREAT, 0600);
    _exit(fd >= 0 ? 4 : 5);
  }
  wait_for("vfork", child);
  char* command[] = {"/bin/sh", "-c", "echo x > \"$0\"", exec_path, NULL};
  char* nothing[] = {NULL};
  child = vfork();
  if (child == 0) {
    execve(command[0], command, environ);
    _exit(6);
  }
  wait_for("vfork and exec", child);
  child = fork();
  if (child == 0) {
    execve(command[0], command, nothing);
    _exit(6);
  }
  wait_for("exec without an environment", child);
}

/* Before main, perhaps before the preload library's own start. */
__attribute__((constructor(101))) static void early(void) {
  const char* where = getenv("PROCESSES_FOLDER");
  if (where == NULL) return;
  snprintf(constructor_path, sizeof(constructor_path), "%s/early-journal", where);
  close(open(constructor_path, O_RDWR | O_CREAT, 0600));
}

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  folder = argv[1];
  snprintf(vfork_path, sizeof(vfork_path), "%s/vfork-journal", folder);
  snprintf(exec_path, sizeof(exec_path), "%s/exec-journal", folder);
  snprintf(signal_path, sizeof(signal_path), "%s/signal-journal", folder);
  signal(SIGUSR1, on_signal);
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, open_many, (void*)i);
  raise(SIGUSR1);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  fflush(stdout);
  children();
  return 0;
}
