#include <errno.h>
#include <string.h>

#include "libstream/profile.h"

enum { kNameMax = 31 };

int stream_name_check(const char* name) {
  const size_t length = strnlen(name, kNameMax + 1);
  if (length > kNameMax) return -ENAMETOOLONG;
  size_t digits = 0;
  for (size_t i = 0; i < length; ++i) {
    const unsigned char byte = (unsigned char)name[i];
    if (byte < 0x20 || byte == 0x7f || byte == '/') return -EINVAL;
    digits += byte >= '0' && byte <= '9';
  }
  return digits == length ? -EINVAL : 0; /* of an empty one, too */
}
