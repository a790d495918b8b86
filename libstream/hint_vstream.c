/* vStreams as a program names them. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "libstream/include/libstream.h"
#include "libstream/profile.h"

enum { kNumberMax = 65535, kUnitShift = 10 };

int stream_open(struct stream_vstream* out, const char* name) {
  memset(out, 0, sizeof(*out));
  const int wrong = stream_name_check(name);
  if (wrong != 0) return wrong;
  memcpy(out->name, name, strlen(name));
  return 0;
}

int stream_open_number(struct stream_vstream* out, unsigned number) {
  memset(out, 0, sizeof(*out));
  if (number < 1 || number > kNumberMax) return -EINVAL;
  out->number = number;
  return 0;
}

/* The power of four nearest to `value` by ratio. 4^k is nearest from 2 * 4^(k-1) to 2 * 4^k. */
static unsigned power_of_four(uint64_t value) {
  unsigned power = 0;
  while (power < 31 && value >= UINT64_C(2) << (2 * power)) ++power;
  return power;
}

/* "life-", the number, the unit. */
static void name_life(struct stream_vstream* out, uint64_t number, const char* unit) {
  char digits[20];
  size_t count = 0, length = 5;
  memset(out, 0, sizeof(*out));
  memcpy(out->name, "life-", length);
  for (; number != 0; number /= 10) digits[count++] = (char)('0' + number % 10);
  while (count > 0) out->name[length++] = digits[--count];
  memcpy(out->name + length, unit, strlen(unit));
}

int stream_open_bytes(struct stream_vstream* out, uint64_t bytes) {
  static const char* const kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  memset(out, 0, sizeof(*out));
  if (bytes == 0) return -EINVAL;
  const unsigned bits = 2 * power_of_four(bytes);
  name_life(out, UINT64_C(1) << bits % kUnitShift, kUnits[bits / kUnitShift]);
  return 0;
}

int stream_open_seconds(struct stream_vstream* out, uint64_t seconds) {
  memset(out, 0, sizeof(*out));
  if (seconds == 0) return -EINVAL;
  name_life(out, UINT64_C(1) << 2 * power_of_four(seconds), "s");
  return 0;
}
