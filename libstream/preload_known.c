#include "libstream/preload_known.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "libstream/mount.h"

enum { kSlots = 64, kSecondBits = 12, kForeignSecondsMax = 1, kSettledSecondsMax = 16 };
enum { kHandleBytes = 32 };

/* A hash's upper bits | the second of the answer. */
static _Atomic uint64_t foreign[kSlots], settled[kSlots];

static const uint64_t kSecondMask = (UINT64_C(1) << kSecondBits) - 1;

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 32;
}

static uint64_t hash_of(const char* bytes, size_t length) {
  uint64_t hash = length, word;
  for (; length >= sizeof(word); bytes += sizeof(word), length -= sizeof(word)) {
    memcpy(&word, bytes, sizeof(word));
    hash = mix(hash, word);
  }
  word = 0;
  memcpy(&word, bytes, length);
  return mix(hash, word);
}

static _Atomic uint64_t* slot_of(_Atomic uint64_t* table, uint64_t hash) {
  return &table[hash >> kSecondBits & (kSlots - 1)];
}

static int knows(_Atomic uint64_t* table, uint64_t hash, unsigned seconds_max) {
  const uint64_t entry = atomic_load_explicit(slot_of(table, hash), memory_order_relaxed);
  if (((entry ^ hash) & ~kSecondMask) != 0) return 0;
  return ((stream_now_seconds() - entry) & kSecondMask) <= seconds_max;
}

static void learn(_Atomic uint64_t* table, uint64_t hash) {
  const uint64_t entry = (hash & ~kSecondMask) | (stream_now_seconds() & kSecondMask);
  atomic_store_explicit(slot_of(table, hash), entry, memory_order_relaxed);
}

/* The length of the folder's part, 0 for the root and for a relative path. */
static size_t folder_length(const char* path) {
  return path[0] == '/' ? (size_t)(strrchr(path, '/') - path) : 0;
}

int preload_folder_is_foreign(const char* path) {
  const size_t length = folder_length(path);
  return length != 0 && knows(foreign, hash_of(path, length), kForeignSecondsMax);
}

void preload_folder_turned_out_foreign(const char* path, dev_t device) {
  const size_t length = folder_length(path);
  char folder[PATH_MAX];
  struct stat above;
  if (length == 0 || length >= sizeof(folder)) return;
  memcpy(folder, path, length);
  folder[length] = '\0';
  const int errno_before = errno;
  if (stat(folder, &above) == 0 && above.st_dev == device) learn(foreign, hash_of(folder, length));
  errno = errno_before;
}

/* The kernel's handle holds the inode's generation: a file that gets its number later has another.
 * With the mount's number it is the file. fstat(2) would tell less and wait for the filesystem. */
uint64_t preload_offer(int fd, const char* vstream) {
  union {
    struct file_handle head;
    unsigned char bytes[sizeof(struct file_handle) + kHandleBytes];
  } handle;
  memset(&handle, 0, sizeof(handle));
  handle.head.handle_bytes = kHandleBytes;
  int mount = 0;
  const int errno_before = errno;
  const int known = name_to_handle_at(fd, "", &handle.head, &mount, AT_EMPTY_PATH) == 0;
  errno = errno_before;
  if (!known) return 0;
  uint64_t hash = hash_of((const char*)handle.bytes, sizeof(handle.bytes));
  hash = mix(hash, (uint64_t)(unsigned)mount);
  return mix(hash, (uint64_t)(uintptr_t)vstream) | UINT64_C(1) << 63;
}

int preload_is_settled(uint64_t offer) {
  return offer != 0 && knows(settled, offer, kSettledSecondsMax);
}

void preload_settle(uint64_t offer) {
  if (offer != 0) learn(settled, offer);
}
