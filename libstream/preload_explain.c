/* Each line takes one open, one write and one close. The program's own descriptors stay as they
 * are, and a killed process leaves its lines. */
#include "libstream/preload_explain.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libstream/preload.h"

enum { kPathMax = 1024, kLineMax = 4 * kPathMax + 256, kOutcomeDigitsMax = 11 };

struct line {
  char text[kLineMax];
  size_t length;
};

static void put(struct line* line, char byte) {
  if (line->length < sizeof(line->text)) line->text[line->length++] = byte;
}

static void put_text(struct line* line, const char* text) {
  for (; *text != '\0'; ++text) put(line, *text);
  put(line, '\t');
}

static void put_outcome(struct line* line, int outcome) {
  char digits[kOutcomeDigitsMax];
  size_t count = 0;
  unsigned rest = outcome < 0 ? (unsigned)-outcome : (unsigned)outcome;
  do {
    digits[count++] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (outcome < 0) put(line, '-');
  while (count > 0) put(line, digits[--count]);
  put(line, '\t');
}

static void put_escaped(struct line* line, const char* bytes, size_t length) {
  for (size_t i = 0; i < length; ++i) {
    const unsigned char byte = (unsigned char)bytes[i];
    if (byte >= 0x20 && byte != 0x7f && byte != '\\') {
      put(line, (char)byte);
      continue;
    }
    put(line, '\\');
    put(line, (char)('0' + (byte >> 6)));
    put(line, (char)('0' + (byte >> 3 & 7)));
    put(line, (char)('0' + (byte & 7)));
  }
}

static void put_path(struct line* line, int fd) {
  char link[32] = "/proc/self/fd/";
  char digits[kOutcomeDigitsMax];
  size_t count = 0, length = strlen(link);
  for (int rest = fd; rest > 0 || count == 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
  while (count > 0) link[length++] = digits[--count];
  char path[kPathMax];
  const ssize_t got = readlink(link, path, sizeof(path));
  if (got > 0) put_escaped(line, path, (size_t)got);
}

void preload_explain(int fd, const char* rule, const char* vstream, int outcome) {
  const struct preload_config* config = preload_config();
  if (config == NULL || config->explain[0] == '\0') return;
  const int errno_before = errno;
  struct line line;
  line.length = 0;
  put_outcome(&line, outcome);
  put_text(&line, rule);
  put_text(&line, vstream);
  put_path(&line, fd);
  put(&line, '\n');
  const long file = syscall(SYS_openat, AT_FDCWD, config->explain,
                            O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0);
  if (file >= 0) {
    syscall(SYS_write, file, line.text, line.length); /* on a full disk the line is lost */
    syscall(SYS_close, file);
  }
  errno = errno_before;
}
