/* Calls every function that the preload library stands in for, well and badly, in the folder given,
 * and prints all that a program can see of it. The output names no path: two runs in two folders
 * must print the same.
 * usage: entry_points FOLDER */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
int __openat64_2(int directory, const char* path, int flags);

enum { kNobodysErrno = 4711 };

static char path_text[4096];
static const char* folder;

static char* path(const char* name) {
  snprintf(path_text, sizeof(path_text), "%s/%s", folder, name);
  errno = kNobodysErrno;
  return path_text;
}

/* Result, errno, descriptor flags, mode; then the file can be written and is closed. */
static void show(const char* what, int fd) {
  const int code = errno;
  printf("%s: fd %d errno %d", what, fd, code);
  if (fd >= 0) {
    struct stat status;
    fstat(fd, &status);
    const ssize_t written = write(fd, "12345", 5);
    printf(" mode %o links %lu getfl %x getfd %d written %zd", (unsigned)status.st_mode,
           (unsigned long)status.st_nlink, (unsigned)fcntl(fd, F_GETFL), fcntl(fd, F_GETFD),
           written);
    close(fd);
  }
  putchar('\n');
}

static void show_stream(const char* what, FILE* stream) {
  const int code = errno;
  printf("%s: %s errno %d", what, stream == NULL ? "NULL" : "stream", code);
  if (stream != NULL) {
    printf(" fd %d put %d", fileno(stream), fputs("hello", stream));
    printf(" close %d", fclose(stream));
  }
  putchar('\n');
}

static void make(const char* name) {
  close(open(path(name), O_WRONLY | O_CREAT, 0644));
}

static void opens(void) {
  const int flags = O_RDWR | O_CREAT;
  show("open", open(path("open-journal"), flags, 0640));
  show("open64", open64(path("open64-journal"), flags | O_CLOEXEC, 0604));
  show("openat", openat(AT_FDCWD, path("openat-journal"), flags | O_EXCL, 0600));
  show("openat64", openat64(AT_FDCWD, path("openat64-journal"), flags | O_APPEND, 0600));
  show("creat", creat(path("creat-journal"), 0600));
  show("creat64", creat64(path("creat64-journal"), 0640));
  make("__open_2-journal");
  show("__open_2", __open_2(path("__open_2-journal"), O_RDWR));
  make("__open64_2-journal");
  show("__open64_2", __open64_2(path("__open64_2-journal"), O_WRONLY));
  make("__openat_2-journal");
  show("__openat_2", __openat_2(AT_FDCWD, path("__openat_2-journal"), O_WRONLY));
  make("__openat64_2-journal");
  show("__openat64_2", __openat64_2(AT_FDCWD, path("__openat64_2-journal"), O_RDWR));
  const int directory = open(path(""), O_RDONLY | O_DIRECTORY);
  show("openat relative", openat(directory, "relative-journal", flags, 0600));
  close(directory);
  show("O_TMPFILE", open(path(""), O_TMPFILE | O_RDWR, 0600));
}

static void bad_opens(void) {
  make("there-journal");
  show("no such folder", open(path("none/a-journal"), O_RDWR | O_CREAT, 0600));
  show("no such file", open64(path("none-journal"), O_RDWR));
  show("exists", open(path("there-journal"), O_RDWR | O_CREAT | O_EXCL, 0600));
  show("a folder", open(path(""), O_RDWR));
  show("not a folder", openat(AT_FDCWD, path("there-journal/x"), O_RDWR | O_CREAT, 0600));
  show("bad folder", openat(-7, "x-journal", O_RDWR | O_CREAT, 0600));
  path("");
  show("no path", open((const char*)1, O_RDWR));
  show("creat in no folder", creat(path("none/a"), 0600));
  show("read only", open(path("there-journal"), O_RDONLY));
  show("path only", open(path("there-journal"), O_PATH | O_RDWR));
}

static void streams(void) {
  show_stream("fopen", fopen(path("fopen-journal"), "w"));
  show_stream("fopen64", fopen64(path("fopen64-journal"), "a+e"));
  show_stream("fopen r", fopen(path("fopen-journal"), "r"));
  show_stream("fopen none", fopen(path("none-journal"), "r+"));
  show_stream("fopen bad mode", fopen(path("mode-journal"), "q"));
  show_stream("fopen no mode", fopen(path("mode-journal"), ""));
  show_stream("freopen", freopen(path("freopen-journal"), "w", fopen("/dev/null", "r")));
  show_stream("freopen64", freopen64(path("freopen64-journal"), "w+", fopen("/dev/null", "r")));
  show_stream("freopen none", freopen(path("none/x-journal"), "w", fopen("/dev/null", "r")));
  FILE* same = fopen(path("same-journal"), "w");
  show_stream("freopen mode", freopen(NULL, "a", same));
  errno = kNobodysErrno;
  show_stream("tmpfile", tmpfile());
  errno = kNobodysErrno;
  show_stream("tmpfile64", tmpfile64());
}

static void temporaries(void) {
  show("mkstemp", mkstemp(path("mkstemp-mjXXXXXX")));
  show("mkstemp64", mkstemp64(path("mkstemp64-mjXXXXXX")));
  show("mkostemp", mkostemp(path("mkostemp-mjXXXXXX"), O_CLOEXEC));
  show("mkostemp64", mkostemp64(path("mkostemp64-mjXXXXXX"), O_APPEND));
  show("mkstemps", mkstemps(path("mkstemps.XXXXXX-journal"), 8));
  show("mkstemps64", mkstemps64(path("mkstemps64.XXXXXX-journal"), 8));
  show("mkostemps", mkostemps(path("mkostemps.XXXXXX-journal"), 8, O_CLOEXEC));
  show("mkostemps64", mkostemps64(path("mkostemps64.XXXXXX-journal"), 8, O_SYNC));
  show("mkstemp bad template", mkstemp(path("mkstemp-mj")));
  show("mkstemp no folder", mkstemp(path("none/mkstemp-mjXXXXXX")));
}

static void show_fcntl(const char* what, int result, long long value) {
  printf("%s: %d errno %d value %lld\n", what, result, errno, value);
  errno = kNobodysErrno;
}

static void controls(void) {
  const int fd = open(path("fcntl"), O_RDWR | O_CREAT, 0600);
  unsigned long long value = RWH_WRITE_LIFE_LONG;
  const int pipe_end = dup(fd);
  show_fcntl("F_DUPFD", fcntl(fd, F_DUPFD, 50), 0);
  show_fcntl("F_GETFD", fcntl64(50, F_GETFD), 0);
  show_fcntl("F_SETFL", fcntl(fd, F_SETFL, O_APPEND), fcntl64(fd, F_GETFL));
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 5};
  show_fcntl("F_SETLK", fcntl64(fd, F_SETLK, &lock), 0);
  show_fcntl("F_SET_RW_HINT", fcntl(fd, F_SET_RW_HINT, &value), 0);
  value = 77;
  show_fcntl("F_GET_RW_HINT", fcntl64(fd, F_GET_RW_HINT, &value), (long long)value);
  value = 6;
  show_fcntl("F_SET_RW_HINT 6", fcntl(fd, F_SET_RW_HINT, &value), 0);
  show_fcntl("F_SET_RW_HINT nowhere", fcntl(fd, F_SET_RW_HINT, (void*)8), 0);
  value = 1;
  show_fcntl("F_SET_RW_HINT badfd", fcntl(999, F_SET_RW_HINT, &value), 0);
  show_fcntl("F_SET_FILE_RW_HINT", fcntl(fd, 1038, &value), 0);
  show_fcntl("F_SET_FILE_RW_HINT nowhere", fcntl(fd, 1038, (void*)8), 0);
  show_fcntl("F_GET_FILE_RW_HINT", fcntl64(fd, 1037, &value), (long long)value);
  show_fcntl("F_GET_FILE_RW_HINT badfd", fcntl64(999, 1037, &value), (long long)value);
  show_fcntl("no command", fcntl(fd, 123456, &value), 0);
  show_fcntl("posix_fadvise", posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
  show_fcntl("posix_fadvise64", posix_fadvise64(fd, 0, 0, POSIX_FADV_NORMAL), 0);
  show_fcntl("posix_fadvise no advice", posix_fadvise(fd, 0, 0, 77), 0);
  show_fcntl("posix_fadvise badfd", posix_fadvise64(999, 0, 0, POSIX_FADV_NORMAL), 0);
  close(50);
  close(pipe_end);
  close(fd);
}

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  folder = argv[1];
  umask(022);
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  opens();
  bad_opens();
  streams();
  temporaries();
  controls();
  return 0;
}
