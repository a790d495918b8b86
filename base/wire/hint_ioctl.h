/* The hint ioctl labels an open file or asks about vStreams. It has a fixed size and no pointers,
 * so that the kernel passes it to a FUSE server. libstream and the filesystem share this header,
 * which is plain C.
 *
 * A mount that ignores hints (placement=learned or off) answers NUMBER, NAME and RW_HINT with the
 * vStream that the file has instead of the requested one, and without an error. Errors: ENOTTY or
 * ENOSYS from other filesystems; EINVAL for an unknown version or command, or an invalid number,
 * name or rw_hint; EACCES for a change by a user who neither owns nor may write the file; EROFS. */
#ifndef STREAMFS_BASE_WIRE_HINT_IOCTL_H
#define STREAMFS_BASE_WIRE_HINT_IOCTL_H

#include <linux/ioctl.h>
#include <stdint.h>

#define STREAMFS_HINT_VERSION 1u

/* NOLINTBEGIN(readability-identifier-naming,performance-enum-size): C's names and types. */
enum streamfs_hint_command {
  STREAMFS_HINT_QUERY = 0,   /* fill in the inode's vStream */
  STREAMFS_HINT_NUMBER = 1,  /* vstream = number */
  STREAMFS_HINT_NAME = 2,    /* vstream = the vStream name, made if new; number is returned */
  STREAMFS_HINT_RW_HINT = 3, /* rw_hint = RWH_WRITE_LIFE_*; number is returned */
  STREAMFS_HINT_CLEAR = 4,   /* back to the vStream that rules and contexts give */
  /* VSTREAM and DEVICE work on any file of the mount and neither read nor change it. A filesystem
   * that does not know them returns EINVAL. */
  STREAMFS_HINT_VSTREAM = 5, /* fill in the vStream called name, or numbered number if name is
                                ""; ENOENT: there is none, or the caller may not see it */
  STREAMFS_HINT_DEVICE = 6   /* pstream = number of pStreams, number = 1 if hints are honoured,
                                name = the mechanism by which a write names its pStream */
};

struct streamfs_hint {
  uint32_t version;        /* STREAMFS_HINT_VERSION */
  uint32_t command;        /* enum streamfs_hint_command */
  uint16_t number;         /* vStream, 1..65535; 0 = none */
  uint16_t pstream;        /* out: where a plain new write would go now */
  uint32_t rw_hint;        /* RWH_WRITE_LIFE_* */
  uint64_t lifetime_bytes; /* out: measured lifetime, 0 = not known yet */
  char name[32];           /* NUL-terminated unless 32 bytes long */
};
/* NOLINTEND(readability-identifier-naming,performance-enum-size) */

#define STREAMFS_IOC_HINT _IOWR('M', 0x53, struct streamfs_hint)

#endif
