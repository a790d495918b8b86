#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/wire/hint_ioctl.h"
#include "libstream/include/libstream.h"
#include "libstream/mount.h"

/* base/wire/control.h names it for C++. */
static const char kVStreamXattr[] = "user.streamfs.vstream";

enum { kNumberMax = 65535, kNumberDigitsMax = 5 };

_Static_assert(sizeof(((struct stream_vstream*)0)->name) ==
                   sizeof(((struct streamfs_hint*)0)->name),
               "a name fits the ioctl");
_Static_assert(sizeof(struct stream_info) == 56, "part of the ABI");

_Static_assert(sizeof(struct stream_device) == 40, "part of the ABI");

static int is_directory(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Sends a hint that changes something: a directory keeps its label in an attribute instead. */
static int send_to_file(int fd, struct streamfs_hint* hint) {
  const int errno_before = errno;
  const int result = is_directory(fd) ? -EISDIR : stream_ask(fd, hint);
  errno = errno_before;
  return result;
}

/* A descriptor to send the ioctl through, or -errno, or 1 for what is not a file. Devices, pipes
 * and sockets are not opened: opening some of them does something. */
static int open_for_hint(const char* path, int* fd) {
  struct stat status;
  if (stat(path, &status) != 0) return -errno;
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return STREAM_NOT_STREAMFS;
  const int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  *fd = open(path, O_RDONLY | flags);
  if (*fd < 0 && errno == EACCES) *fd = open(path, O_WRONLY | flags);
  return *fd < 0 ? -errno : STREAM_HONOURED;
}

typedef int (*hint_sender)(int fd, struct streamfs_hint* hint);

static int send_to_path(const char* path, struct streamfs_hint* hint, hint_sender sender) {
  const int errno_before = errno;
  int fd = -1;
  int result = open_for_hint(path, &fd);
  if (fd >= 0) {
    result = sender(fd, hint);
    close(fd);
  }
  errno = errno_before;
  return result;
}

/* 0 when `path` is a directory of a streamfs mount. On any other filesystem the attribute could be
 * set just as well, and would mean nothing: so ask first. */
static int is_streamfs_directory(const char* path) {
  struct stat status;
  if (stat(path, &status) != 0) return -errno;
  if (!S_ISDIR(status.st_mode)) return -ENOTDIR;
  struct streamfs_hint hint = {.command = STREAMFS_HINT_QUERY};
  const int result = send_to_path(path, &hint, stream_ask);
  /* A filesystem that knows the question and answers it for files only. */
  return result == -EISDIR ? STREAM_HONOURED : result;
}

static struct streamfs_hint tag_of(const struct stream_vstream* stream) {
  struct streamfs_hint hint = {.command = STREAMFS_HINT_NUMBER, .number = (uint16_t)stream->number};
  if (stream->name[0] != '\0') {
    hint.command = STREAMFS_HINT_NAME;
    hint.number = 0;
    memcpy(hint.name, stream->name, sizeof(hint.name));
  }
  return hint;
}

static int is_vstream(const struct stream_vstream* stream) {
  if (stream->name[0] != '\0') return memchr(stream->name, '\0', sizeof(stream->name)) != NULL;
  return stream->number >= 1 && stream->number <= kNumberMax;
}

/* The attribute's text: the name, or the number in decimal. Returns its length. */
static size_t attribute_of(const struct stream_vstream* stream, char text[STREAM_NAME_MAX + 1]) {
  if (stream->name[0] != '\0') {
    memcpy(text, stream->name, sizeof(stream->name));
    return strlen(text);
  }
  char digits[kNumberDigitsMax];
  size_t count = 0;
  for (unsigned rest = stream->number; rest != 0; rest /= 10) {
    digits[count++] = (char)('0' + rest % 10);
  }
  for (size_t i = 0; i < count; ++i) text[i] = digits[count - 1 - i];
  return count;
}

static int set_attribute(const char* path, const char* text, size_t length) {
  if (setxattr(path, kVStreamXattr, text, length, 0) != 0) return -errno;
  char now[STREAM_NAME_MAX + 1];
  const ssize_t got = getxattr(path, kVStreamXattr, now, sizeof(now));
  const int taken = got == (ssize_t)length && memcmp(now, text, length) == 0;
  return taken ? STREAM_HONOURED : -EOPNOTSUPP;
}

int stream_tag_fd(int fd, const struct stream_vstream* stream) {
  if (!is_vstream(stream)) return -EINVAL;
  struct streamfs_hint hint = tag_of(stream);
  return send_to_file(fd, &hint);
}

int stream_tag_path(const char* path, const struct stream_vstream* stream) {
  if (!is_vstream(stream)) return -EINVAL;
  struct streamfs_hint hint = tag_of(stream);
  return send_to_path(path, &hint, send_to_file);
}

int stream_tag_directory(const char* path, const struct stream_vstream* stream) {
  if (!is_vstream(stream)) return -EINVAL;
  const int errno_before = errno;
  char text[STREAM_NAME_MAX + 1];
  const size_t length = attribute_of(stream, text);
  int result = is_streamfs_directory(path);
  if (result == STREAM_HONOURED) result = set_attribute(path, text, length);
  errno = errno_before;
  return result;
}

static int is_life(enum stream_life life) {
  return (unsigned)life <= (unsigned)STREAM_LIFE_EXTREME;
}

/* An NVMe namespace as a character device. */
static int is_generic_namespace(dev_t device) {
  char path[64], target[256];
  snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/subsystem", major(device), minor(device));
  const ssize_t length = readlink(path, target, sizeof(target) - 1);
  if (length <= 0) return 0;
  target[length] = '\0';
  const char* name = strrchr(target, '/');
  return name != NULL && strcmp(name + 1, "nvme-generic") == 0;
}

static int is_device(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return 0;
  return S_ISBLK(status.st_mode) ||
         (S_ISCHR(status.st_mode) && is_generic_namespace(status.st_rdev));
}

static int pass_on(int fd, enum stream_life life) {
  uint64_t wide = (uint64_t)life;
  return fcntl(fd, F_SET_RW_HINT, &wide) == 0 ? STREAM_PASSED_ON : -errno;
}

int stream_hint_fd(int fd, enum stream_life life) {
  if (!is_life(life)) return -EINVAL;
  const int errno_before = errno;
  const int passed = is_device(fd) ? pass_on(fd, life) : STREAM_NOT_STREAMFS;
  errno = errno_before;
  if (passed != STREAM_NOT_STREAMFS) return passed;
  struct streamfs_hint hint = stream_life_hint((uint32_t)life);
  return send_to_file(fd, &hint);
}

int stream_hint_path(const char* path, enum stream_life life) {
  if (!is_life(life)) return -EINVAL;
  struct streamfs_hint hint = stream_life_hint((uint32_t)life);
  return send_to_path(path, &hint, send_to_file);
}

int stream_clear_fd(int fd) {
  struct streamfs_hint hint = {.command = STREAMFS_HINT_CLEAR};
  return send_to_file(fd, &hint);
}

int stream_clear_path(const char* path) {
  struct streamfs_hint hint = {.command = STREAMFS_HINT_CLEAR};
  return send_to_path(path, &hint, send_to_file);
}

int stream_clear_directory(const char* path) {
  const int errno_before = errno;
  int result = is_streamfs_directory(path);
  if (result == STREAM_HONOURED && removexattr(path, kVStreamXattr) != 0 && errno != ENODATA) {
    result = -errno;
  }
  errno = errno_before;
  return result;
}

static int fill(int result, const struct streamfs_hint* hint, struct stream_info* out) {
  memset(out, 0, sizeof(*out));
  if (result != STREAM_HONOURED) return result;
  out->vstream = hint->number;
  out->pstream = hint->pstream;
  out->life = stream_life_of(hint);
  out->lifetime_bytes = hint->lifetime_bytes;
  memcpy(out->name, hint->name, STREAM_NAME_MAX);
  return result;
}

int stream_query_fd(int fd, struct stream_info* out) {
  struct streamfs_hint hint = {.command = STREAMFS_HINT_QUERY};
  const int result = stream_ask(fd, &hint);
  return fill(result, &hint, out);
}

int stream_query_path(const char* path, struct stream_info* out) {
  struct streamfs_hint hint = {.command = STREAMFS_HINT_QUERY};
  const int result = send_to_path(path, &hint, stream_ask);
  return fill(result, &hint, out);
}

static struct streamfs_hint question_of(const struct stream_vstream* stream) {
  struct streamfs_hint hint = tag_of(stream);
  hint.command = STREAMFS_HINT_VSTREAM;
  return hint;
}

int stream_measure_fd(int fd, const struct stream_vstream* stream, struct stream_info* out) {
  memset(out, 0, sizeof(*out));
  if (!is_vstream(stream)) return -EINVAL;
  struct streamfs_hint hint = question_of(stream);
  const int result = stream_ask(fd, &hint);
  return fill(result, &hint, out);
}

int stream_measure_path(const char* path, const struct stream_vstream* stream,
                        struct stream_info* out) {
  memset(out, 0, sizeof(*out));
  if (!is_vstream(stream)) return -EINVAL;
  struct streamfs_hint hint = question_of(stream);
  const int result = send_to_path(path, &hint, stream_ask);
  return fill(result, &hint, out);
}

static int fill_device(int result, const struct streamfs_hint* hint, struct stream_device* out) {
  memset(out, 0, sizeof(*out));
  if (result != STREAM_HONOURED) return result;
  out->pstreams = hint->pstream;
  out->takes_labels = hint->number;
  memcpy(out->mechanism, hint->name, STREAM_NAME_MAX);
  return result;
}

int stream_device_fd(int fd, struct stream_device* out) {
  struct streamfs_hint hint = {.command = STREAMFS_HINT_DEVICE};
  const int result = stream_ask(fd, &hint);
  return fill_device(result, &hint, out);
}

int stream_device_path(const char* path, struct stream_device* out) {
  struct streamfs_hint hint = {.command = STREAMFS_HINT_DEVICE};
  const int result = send_to_path(path, &hint, stream_ask);
  return fill_device(result, &hint, out);
}

const char* stream_version(void) {
  return STREAM_VERSION;
}
