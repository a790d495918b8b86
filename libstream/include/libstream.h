/* libstream: a program says which of its data will die together.
 *
 * On a streamfs mount every write belongs to a vStream, a label on data with one expected lifetime;
 * the filesystem keeps vStreams apart on the SSD. Programs that say nothing get labels from file
 * names and from learning; a program that says something is believed first.
 *
 * Results. Every function that takes a file returns
 *     STREAM_HONOURED (0)       the filesystem took it,
 *     STREAM_NOT_STREAMFS (1)   the file is not on a streamfs mount: nothing was done,
 *     STREAM_PASSED_ON (2)      a device without streamfs: the kernel has the hint, what the device
 *                               makes of it nobody knows (stream_hint_fd() alone),
 *     -errno                    it could not be done; -EOPNOTSUPP: the mount takes no labels now
 *                               (mounted with placement=learned or placement=off);
 *                               -ENOSYS: its filesystem is older than this library and does not
 * know the question. A program may ignore all of them: nothing else about the file depends on them.
 * errno is untouched.
 *
 * Any function may be called from any thread and from a signal handler: there is no state but a
 * lock-free cache of device numbers, no lock and no allocation (but for stream_tag_tree()). A label
 * stays with the file after a crash only as far as the filesystem's metadata does; labels never
 * matter to a file's content.
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
  STREAM_LIFE_NOT_SET = 0, /* nothing said: takes an earlier hint back */
  STREAM_LIFE_NONE = 1,    /* said: no particular lifetime */
  STREAM_LIFE_SHORT = 2,
  STREAM_LIFE_MEDIUM = 3,
  STREAM_LIFE_LONG = 4,
  STREAM_LIFE_EXTREME = 5
};

/* A vStream by name or, with an empty name, by number. The caller owns it; it holds no resource and
 * needs no closing. It belongs to no mount: the filesystem makes the name known when first used. */
struct stream_vstream {
  uint32_t number;
  char name[STREAM_NAME_MAX + 1];
};

/* The filesystem's knowledge of one file. */
struct stream_info {
  uint32_t vstream; /* 0 = none */
  uint32_t pstream; /* where a plain new write would go on the device now */
  uint32_t life;    /* enum stream_life a program gave */
  uint32_t reserved;
  uint64_t lifetime_bytes; /* measured: bytes written to the device from write to death; 0 = not
                              known yet */
  char name[STREAM_NAME_MAX + 1]; /* "" for a vStream without a name */
};

/* How the device under a mount honours labels. */
struct stream_device {
  uint32_t pstreams;     /* how many streams it keeps apart; 1: none, labels are only measured */
  uint32_t takes_labels; /* 0: the mount ignores them (placement=learned or off) */
  char mechanism[STREAM_NAME_MAX + 1]; /* how a write says its stream, for people: "none", ... */
};

/* Fills `out`. -EINVAL: the name is empty, has a '/' or a control character, or is all digits
 * (which would be read as a number in the attribute of a directory); -ENAMETOOLONG. */
int stream_open(struct stream_vstream* out, const char* name);

/* Fills `out`. -EINVAL: not 1 to 65535. */
int stream_open_number(struct stream_vstream* out, unsigned number);

/* A vStream for data expected to live until about so many bytes more have been written to the
 * device, or for about so many seconds: one for each power of four, "life-64MiB", "life-256s". The
 * filesystem goes by that until it has measured their lifetime. -EINVAL: 0. */
int stream_open_bytes(struct stream_vstream* out, uint64_t bytes);
int stream_open_seconds(struct stream_vstream* out, uint64_t seconds);

/* Labels a regular file. Writes from now on belong to the vStream, whoever makes them.
 * Directories: -EISDIR, see stream_tag_directory(). */
int stream_tag_fd(int fd, const struct stream_vstream* stream);
int stream_tag_path(const char* path, const struct stream_vstream* stream);

/* Labels a directory: files and directories made in it from now on inherit the label, all the way
 * down. The same as setfattr -n user.streamfs.vstream -v NAME. */
int stream_tag_directory(const char* path, const struct stream_vstream* stream);

/* The same for a directory, and for every directory and regular file below it that is there
 * already; symbolic links are not followed and other mounts not entered. Goes on where something
 * cannot be labelled, and returns the first such error. `labelled`, which may be NULL, counts what
 * was. Allocates: not for signal handlers. */
int stream_tag_tree(const char* path, const struct stream_vstream* stream, uint64_t* labelled);

/* Gives a regular file one of the general lifetimes. A block device, or an NVMe namespace's
 * /dev/ngXnY, gets it by fcntl(F_SET_RW_HINT): STREAM_PASSED_ON. */
int stream_hint_fd(int fd, enum stream_life life);
int stream_hint_path(const char* path, enum stream_life life);

/* Takes labels and hints back: rules and learning decide again. */
int stream_clear_fd(int fd);
int stream_clear_path(const char* path);
int stream_clear_directory(const char* path);

/* Fills `out` when the result is STREAM_HONOURED, zeroes it otherwise. */
int stream_query_fd(int fd, struct stream_info* out);
int stream_query_path(const char* path, struct stream_info* out);

/* Describes a vStream on the mount of a file or directory, whatever label that file has;
 * `out->life` is not filled in. -ENOENT: the mount has no such vStream. */
int stream_measure_fd(int fd, const struct stream_vstream* stream, struct stream_info* out);
int stream_measure_path(const char* path, const struct stream_vstream* stream,
                        struct stream_info* out);

/* Describes how the device under the mount of a file or directory honours labels. */
int stream_device_fd(int fd, struct stream_device* out);
int stream_device_path(const char* path, struct stream_device* out);

/* "major.minor.patch" of the library that was loaded. */
const char* stream_version(void);

#ifdef __cplusplus
}
#endif

#endif
