/* libstream lets a program state which of its data will die together.
 *
 * On a streamfs mount every write belongs to a vStream, a label on data with one expected lifetime;
 * the filesystem keeps vStreams apart on the SSD. Data of programs without hints gets labels from
 * file names and from learning. A program's own hint takes precedence over both.
 *
 * Results. Every function that takes a file returns
 *     STREAM_HONOURED (0)       the filesystem has done what was asked,
 *     STREAM_NOT_STREAMFS (1)   the file is not on a streamfs mount: nothing was done,
 *     STREAM_PASSED_ON (2)      stream_hint_fd() on a device: the kernel has the hint; the library
 *                               does not know whether the device uses it,
 *     -EOPNOTSUPP               the mount takes no labels (placement=learned or placement=off),
 *     -ENOSYS                   the filesystem is older than this library and does not know the
 *                               request,
 *     -errno                    another error, for example -EACCES if the caller may not label it.
 *
 * A program may ignore all of them: nothing else about the file depends on them. errno is kept.
 *
 * Any function may be called from any thread and from a signal handler: there is no state but a
 * lock-free cache of device numbers, no lock and no allocation (but for stream_tag_tree()). After a
 * crash, a label has survived as far as the filesystem's other metadata. Labels never change a
 * file's content.
 *
 * C89 and later, C++. */
#ifndef STREAMFS_LIBSTREAM_H
#define STREAMFS_LIBSTREAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STREAM_HONOURED 0
#define STREAM_NOT_STREAMFS 1
#define STREAM_PASSED_ON 2

#define STREAM_NAME_MAX 31 /* bytes in a vStream's name, the closing NUL not counted */

/* Expected lifetimes for a program that has no better name for its data. The values are those of
 * fcntl(F_SET_RW_HINT), RWH_WRITE_LIFE_*. */
enum stream_life {
  STREAM_LIFE_NOT_SET = 0, /* takes an earlier hint or label back */
  STREAM_LIFE_NONE = 1,    /* no particular lifetime: on streamfs, the same as NOT_SET */
  STREAM_LIFE_SHORT = 2,
  STREAM_LIFE_MEDIUM = 3,
  STREAM_LIFE_LONG = 4,
  STREAM_LIFE_EXTREME = 5
};

/* A vStream by name or, with an empty name, by number. The caller owns it; it holds no resource and
 * needs no closing. It belongs to no mount: a filesystem makes a vStream for an unknown name when a
 * file is first labelled with it. */
struct stream_vstream {
  uint32_t number;
  char name[STREAM_NAME_MAX + 1];
};

/* The filesystem's knowledge of one file. */
struct stream_info {
  uint32_t vstream; /* 0 = none */
  uint32_t pstream; /* where a plain new write would go on the device now */
  uint32_t life;    /* the enum stream_life that was hinted; else STREAM_LIFE_NOT_SET */
  uint32_t reserved;
  uint64_t lifetime_bytes; /* the measured mean of the bytes written to the device from a write to
                              its death; 0: not known yet */
  char name[STREAM_NAME_MAX + 1]; /* "" for a vStream without a name */
};

/* How the device under a mount honours labels. */
struct stream_device {
  uint32_t pstreams;     /* how many streams it keeps apart; 1: none, lifetimes are only measured */
  uint32_t takes_labels; /* 0: the mount ignores them (placement=learned or off) */
  char mechanism[STREAM_NAME_MAX + 1]; /* how a write names its stream, for people: "none", ... */
};

/* Fills `out` and returns 0. -EINVAL: the name is empty, has a '/' or a control character, or is
 * all digits, which the attribute of a directory would take for a number. -ENAMETOOLONG: it is
 * longer than STREAM_NAME_MAX. After an error `out` is zeroed. */
int stream_open(struct stream_vstream* out, const char* name);

/* Fills `out` and returns 0. -EINVAL: the number is not 1 to 65535; `out` is then zeroed. */
int stream_open_number(struct stream_vstream* out, unsigned number);

/* Fills `out` with a vStream for data that is expected to live until about so many more bytes have
 * been written to the device, or for about so many seconds, and returns 0. There is one for each
 * power of four: "life-64MiB", "life-256s". The filesystem uses the stated lifetime until it has
 * measured one. -EINVAL: `bytes` or `seconds` is 0; `out` is then zeroed. */
int stream_open_bytes(struct stream_vstream* out, uint64_t bytes);
int stream_open_seconds(struct stream_vstream* out, uint64_t seconds);

/* Labels a regular file. Later writes to it belong to the vStream, whichever program makes them.
 * -EISDIR: it is a directory, see stream_tag_directory(). -EINVAL: `stream` is not valid. */
int stream_tag_fd(int fd, const struct stream_vstream* stream);
int stream_tag_path(const char* path, const struct stream_vstream* stream);

/* Labels a directory: files and directories that are made in it later inherit the label, at every
 * depth. It does the same as setfattr -n user.streamfs.vstream -v NAME. -ENOTDIR: it is not a
 * directory. */
int stream_tag_directory(const char* path, const struct stream_vstream* stream);

/* Labels a directory, and every directory and regular file that exists below it. Symbolic links are
 * not followed, and other mounts are not entered. If something cannot be labelled, goes on and
 * returns the first such error; stops only at a file that is not on streamfs. Stores in `labelled`,
 * which may be NULL, how many were labelled. Allocates, and so is not for signal handlers. */
int stream_tag_tree(const char* path, const struct stream_vstream* stream, uint64_t* labelled);

/* Gives a regular file one of the general lifetimes. stream_hint_fd() passes the hint for a block
 * device, or an NVMe namespace's /dev/ngXnY, to fcntl(F_SET_RW_HINT) and returns STREAM_PASSED_ON
 * or its -errno. stream_hint_path() opens no devices and returns STREAM_NOT_STREAMFS. -EISDIR: it
 * is a directory. -EINVAL: `life` is no enum stream_life. */
int stream_hint_fd(int fd, enum stream_life life);
int stream_hint_path(const char* path, enum stream_life life);

/* Takes labels and hints back, so that rules and learning decide again. */
int stream_clear_fd(int fd);
int stream_clear_path(const char* path);
int stream_clear_directory(const char* path);

/* Describes the label of a file or directory. Zeroes `out` unless the result is STREAM_HONOURED. */
int stream_query_fd(int fd, struct stream_info* out);
int stream_query_path(const char* path, struct stream_info* out);

/* Describes a vStream on the mount of a file or directory, whatever label that file has.
 * `out->life` is set for the vStreams of general lifetimes alone. Zeroes `out` unless the result is
 * STREAM_HONOURED. -ENOENT: the mount has no such vStream, or hides it from the caller. */
int stream_measure_fd(int fd, const struct stream_vstream* stream, struct stream_info* out);
int stream_measure_path(const char* path, const struct stream_vstream* stream,
                        struct stream_info* out);

/* Describes how the device under the mount of a file or directory honours labels. Zeroes `out`
 * unless the result is STREAM_HONOURED. */
int stream_device_fd(int fd, struct stream_device* out);
int stream_device_path(const char* path, struct stream_device* out);

/* Returns "major.minor.patch" of the library that was loaded. */
const char* stream_version(void);

#ifdef __cplusplus
}
#endif

#endif
