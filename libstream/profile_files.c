/* Profiles from files. Without malloc and past the functions that the preload library stands in
 * for, since it loads profiles itself: a folder is read with getdents64(2). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libstream/profile.h"

enum { kEntriesBytes = 4096 };

static const char kEnding[] = ".toml";
enum { kEndingLength = sizeof(kEnding) - 1 };

/* As the kernel writes it. */
struct entry {
  uint64_t inode;
  int64_t offset;
  uint16_t length;
  unsigned char type;
  char name[];
};

struct loader {
  struct stream_rules* set;
  stream_rules_report report;
  void* context;
};

static void report_file(const struct loader* loader, const char* path, const char* what) {
  if (loader->report != NULL) loader->report(loader->context, path, 0, 0, what);
}

static int open_to_read(const char* path, int flags) {
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags, 0);
  return fd < 0 ? -errno : (int)fd;
}

/* Reads the rest of a file into the set's text. Its length, or -errno. */
static long read_text(struct stream_rules* set, int fd) {
  char* text = set->text + set->text_used;
  const size_t room = sizeof(set->text) - set->text_used - 1;
  size_t length = 0;
  for (ssize_t got = 1; got > 0 && length < room; length += (size_t)got) {
    got = read(fd, text + length, room - length);
    if (got < 0) return -errno;
  }
  char more;
  if (length == room && read(fd, &more, 1) != 0) return -EFBIG;
  text[length] = '\0';
  return memchr(text, '\0', length) == NULL ? (long)length : -EILSEQ;
}

/* The profile's name, kept in the set's text: the file's without ".toml". */
static const char* keep_name(struct stream_rules* set, const char* path) {
  const char* slash = strrchr(path, '/');
  const char* base = slash == NULL ? path : slash + 1;
  size_t length = strlen(base);
  if (length > kEndingLength && strcmp(base + length - kEndingLength, kEnding) == 0) {
    length -= kEndingLength;
  }
  if (length + 1 >= sizeof(set->text) - set->text_used) return NULL;
  char* kept = set->text + set->text_used;
  memcpy(kept, base, length);
  kept[length] = '\0';
  set->text_used += length + 1;
  return kept;
}

static int load_file(const struct loader* loader, const char* path) {
  struct stream_rules* set = loader->set;
  const int fd = open_to_read(path, 0);
  if (fd < 0) return fd;
  const char* name = keep_name(set, path);
  const long length = name == NULL ? -EFBIG : read_text(set, fd);
  syscall(SYS_close, fd);
  if (length < 0) return (int)length;
  char* text = set->text + set->text_used;
  set->text_used += (size_t)length + 1;
  stream_profile_parse(set, name, text, path, loader->report, loader->context);
  return 0;
}

static int is_profile(const char* name) {
  const size_t length = strlen(name);
  return length > kEndingLength && name[0] != '.' &&
         strcmp(name + length - kEndingLength, kEnding) == 0;
}

/* The first profile's name behind `after` in byte order, "" if there is none; -errno. The folder is
 * read again for each: it holds few, and nothing has to be kept. */
static int next_name(int folder, const char* after, char next[NAME_MAX + 1]) {
  _Alignas(struct entry) char entries[kEntriesBytes];
  next[0] = '\0';
  if (lseek(folder, 0, SEEK_SET) < 0) return -errno;
  for (;;) {
    const long got = syscall(SYS_getdents64, folder, entries, sizeof(entries));
    if (got <= 0) return got < 0 ? -errno : 0;
    for (long at = 0; at < got;) {
      const struct entry* entry = (const struct entry*)(const void*)(entries + at);
      at += entry->length;
      if (!is_profile(entry->name) || strcmp(entry->name, after) <= 0) continue;
      if (next[0] == '\0' || strcmp(entry->name, next) < 0) strcpy(next, entry->name);
    }
  }
}

int stream_join_path(char out[PATH_MAX], const char* folder, const char* name) {
  const size_t length = strlen(folder), more = strlen(name);
  if (length + 1 + more >= PATH_MAX) return -ENAMETOOLONG;
  memcpy(out, folder, length);
  out[length] = '/';
  memcpy(out + length + 1, name, more + 1);
  return 0;
}

const char* stream_words_for_load(int code) {
  switch (code) {
    case -ENOENT:
      return "there is no such file";
    case -EACCES:
      return "permission denied";
    case -EFBIG:
      return "profiles are too long: more than 64 KiB in all";
    case -EILSEQ:
      return "a NUL byte: this is no text";
    default:
      return "cannot be read";
  }
}

static void load_folder(const struct loader* loader, const char* path) {
  const int folder = open_to_read(path, O_DIRECTORY);
  if (folder == -ENOENT) return;
  char name[NAME_MAX + 1] = "", next[NAME_MAX + 1], file[PATH_MAX];
  int code = folder;
  while (code >= 0 && (code = next_name(folder, name, next)) == 0 && next[0] != '\0') {
    strcpy(name, next);
    int loaded = stream_join_path(file, path, name);
    if (loaded == 0) loaded = load_file(loader, file);
    if (loaded != 0) report_file(loader, file, stream_words_for_load(loaded));
  }
  if (code < 0) report_file(loader, path, stream_words_for_load(code));
  if (folder >= 0) syscall(SYS_close, folder);
}

void stream_rules_load_folder(struct stream_rules* set, const char* folder,
                              stream_rules_report report, void* context) {
  const struct loader loader = {set, report, context};
  load_folder(&loader, folder);
}

int stream_rules_load_file(struct stream_rules* set, const char* path, stream_rules_report report,
                           void* context) {
  const struct loader loader = {set, report, context};
  return load_file(&loader, path);
}
