#include "libstream/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/wire/hint_ioctl.h"

enum { kForeignSlots = 32, kForeignSecondsMax = 1 };

/* Device numbers that answered "not streamfs": number << 32 | second of the answer. Each slot is
 * one word, so a reader sees a whole entry or another whole entry. */
static _Atomic uint64_t foreign[kForeignSlots];

/* The kernel's device number has 32 bits, all of them in the low half of glibc's dev_t. */
static uint32_t number_of(dev_t device) {
  return (uint32_t)device;
}

static _Atomic uint64_t* slot_of(dev_t device) {
  const uint32_t number = number_of(device);
  return &foreign[(number ^ number >> 8 ^ number >> 20) % kForeignSlots];
}

uint32_t stream_now_seconds(void) {
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (uint32_t)now.tv_sec + 1; /* never 0: an empty slot is older than everything */
}

int stream_is_foreign(dev_t device) {
  const uint64_t entry = atomic_load_explicit(slot_of(device), memory_order_relaxed);
  return entry >> 32 == number_of(device) && (uint32_t)entry != 0 &&
         stream_now_seconds() - (uint32_t)entry <= kForeignSecondsMax;
}

static void remember_foreign(dev_t device) {
  const uint64_t entry = (uint64_t)number_of(device) << 32 | stream_now_seconds();
  atomic_store_explicit(slot_of(device), entry, memory_order_relaxed);
}

static int took_it(const struct streamfs_hint* asked, const struct streamfs_hint* answer) {
  switch (asked->command) {
    case STREAMFS_HINT_NUMBER:
      return answer->number == asked->number;
    case STREAMFS_HINT_NAME:
      return strncmp(answer->name, asked->name, sizeof(asked->name)) == 0;
    case STREAMFS_HINT_RW_HINT: /* "none" is no label */
      return asked->rw_hint == RWH_WRITE_LIFE_NONE || stream_life_of(answer) == asked->rw_hint;
    default:
      return 1;
  }
}

static int ask(int fd, struct streamfs_hint* hint) {
  struct stat status;
  if (fstat(fd, &status) != 0) return -errno;
  /* Other kinds of files have ioctls of their own: never send them ours. */
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return 1;
  if (stream_is_foreign(status.st_dev)) return 1;
  hint->version = STREAMFS_HINT_VERSION;
  const struct streamfs_hint asked = *hint;
  if (ioctl(fd, STREAMFS_IOC_HINT, hint) == 0) return took_it(&asked, hint) ? 0 : -EOPNOTSUPP;
  /* An older filesystem answers EINVAL to a command that it does not know. */
  if (errno == EINVAL && asked.command > STREAMFS_HINT_CLEAR) return -ENOSYS;
  if (errno != ENOTTY && errno != ENOSYS) return -errno;
  remember_foreign(status.st_dev);
  return 1;
}

int stream_ask(int fd, struct streamfs_hint* hint) {
  const int errno_before = errno;
  const int result = ask(fd, hint);
  errno = errno_before;
  return result;
}

struct streamfs_hint stream_life_hint(uint32_t life) {
  const int said = life != RWH_WRITE_LIFE_NOT_SET;
  return (struct streamfs_hint){.command = said ? STREAMFS_HINT_RW_HINT : STREAMFS_HINT_CLEAR,
                                .rw_hint = life};
}

uint32_t stream_life_of(const struct streamfs_hint* answer) {
  static const struct {
    char name[16];
    uint32_t life;
  } kLives[] = {{"rwh-short", RWH_WRITE_LIFE_SHORT},
                {"rwh-medium", RWH_WRITE_LIFE_MEDIUM},
                {"rwh-long", RWH_WRITE_LIFE_LONG},
                {"rwh-extreme", RWH_WRITE_LIFE_EXTREME}};
  for (size_t i = 0; i < sizeof(kLives) / sizeof(kLives[0]); ++i) {
    if (strncmp(answer->name, kLives[i].name, sizeof(answer->name)) == 0) return kLives[i].life;
  }
  return RWH_WRITE_LIFE_NOT_SET;
}
