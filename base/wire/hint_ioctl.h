/* The hint ioctl: fixed size, no pointers, so that it reaches a FUSE server.
 * Plain C: shared by libstream and the filesystem. On any other filesystem it fails with ENOTTY. */
#ifndef STREAMFS_BASE_WIRE_HINT_IOCTL_H
#define STREAMFS_BASE_WIRE_HINT_IOCTL_H

#include <linux/ioctl.h>
#include <stdint.h>

#define STREAMFS_HINT_VERSION 1u

/* NOLINTBEGIN(readability-identifier-naming,performance-enum-size): C's names and types. */
enum streamfs_hint_command {
  STREAMFS_HINT_QUERY = 0,   /* fill in what the inode has */
  STREAMFS_HINT_NUMBER = 1,  /* vstream = number */
  STREAMFS_HINT_NAME = 2,    /* vstream = the one called name, made if new; number is returned */
  STREAMFS_HINT_RW_HINT = 3, /* rw_hint = RWH_WRITE_LIFE_*; number is returned */
  STREAMFS_HINT_CLEAR = 4,   /* back to what rules and learning say */
  /* Of any file of the mount, which they neither look at nor change. A filesystem that does not
   * know them answers EINVAL. */
  STREAMFS_HINT_VSTREAM = 5, /* fill in the vStream called name, or numbered number; ENOENT */
  STREAMFS_HINT_DEVICE = 6   /* pstream = how many the device has, number = 1 if labels are taken
                                now, name = how a write says its pStream */
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
