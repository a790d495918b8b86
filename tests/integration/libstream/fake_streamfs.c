/* Test only, an LD_PRELOAD library: files whose path starts with FAKE_STREAMFS_MOUNT answer the
 * hint ioctl as a streamfs mount would. Each file's state lies in FAKE_STREAMFS_STATE/<inode>, so
 * that later processes see it; FAKE_STREAMFS_STATE/log gets "command name number rw_hint path" a
 * line. FAKE_STREAMFS_ERRNO makes every answer that error. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/wire/hint_ioctl.h"

static int quiet_open(const char* path, int flags) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
}

static int on_mount(int fd, char path[4096]) {
  const char* mount = getenv("FAKE_STREAMFS_MOUNT");
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, 4095);
  if (mount == NULL || length < 0) return 0;
  path[length] = '\0';
  return strncmp(path, mount, strlen(mount)) == 0;
}

int fstat(int fd, struct stat* status) {
  char path[4096];
  const int result = fstatat(fd, "", status, AT_EMPTY_PATH);
  if (result == 0 && on_mount(fd, path)) status->st_dev = 0xfff00001;
  return result;
}

static void log_line(const struct streamfs_hint* hint, const char* path) {
  static const char* const kCommands[] = {"query", "number", "name", "rw_hint", "clear"};
  char file[4096], line[8192];
  snprintf(file, sizeof(file), "%s/log", getenv("FAKE_STREAMFS_STATE"));
  const int length =
      snprintf(line, sizeof(line), "%s %s %u %u %s\n", kCommands[hint->command],
               hint->name[0] == '\0' ? "-" : hint->name, hint->number, hint->rw_hint, path);
  const int log = quiet_open(file, O_WRONLY | O_APPEND | O_CREAT);
  if (write(log, line, (size_t)length) != length) abort();
  close(log);
}

static int answer(int fd, struct streamfs_hint* hint) {
  char file[4096];
  struct stat status;
  fstat(fd, &status);
  snprintf(file, sizeof(file), "%s/%lu", getenv("FAKE_STREAMFS_STATE"),
           (unsigned long)status.st_ino);
  struct streamfs_hint now;
  memset(&now, 0, sizeof(now));
  const int state = quiet_open(file, O_RDWR | O_CREAT);
  if (state < 0) abort();
  if (pread(state, &now, sizeof(now), 0) < 0) abort();
  static const char* const kLives[] = {"",           "",         "rwh-short",
                                       "rwh-medium", "rwh-long", "rwh-extreme"};
  const char* name = hint->command == STREAMFS_HINT_RW_HINT ? kLives[hint->rw_hint] : hint->name;
  if (hint->command != STREAMFS_HINT_QUERY) {
    memset(&now, 0, sizeof(now));
    now.number = hint->command == STREAMFS_HINT_NUMBER ? hint->number : name[0] != '\0';
    memcpy(now.name, name, strnlen(name, sizeof(now.name)));
  }
  if (pwrite(state, &now, sizeof(now), 0) < 0) abort();
  close(state);
  hint->number = now.number;
  memcpy(hint->name, now.name, sizeof(now.name));
  return 0;
}

int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  char path[4096];
  if (request != STREAMFS_IOC_HINT || !on_mount(fd, path)) {
    return (int)syscall(SYS_ioctl, fd, request, argument);
  }
  struct streamfs_hint* hint = argument;
  if (hint->version != STREAMFS_HINT_VERSION || hint->command > STREAMFS_HINT_CLEAR) abort();
  log_line(hint, path);
  const char* error = getenv("FAKE_STREAMFS_ERRNO");
  if (error == NULL) return answer(fd, hint);
  errno = atoi(error);
  return -1;
}
