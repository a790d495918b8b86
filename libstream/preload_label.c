/* Which label a file just opened gets, and whether it may have it. */
#include <string.h>

#include "libstream/mount.h"
#include "libstream/preload.h"

struct label {
  const char* rule;
  const char* vstream;
  int by_person; /* stream-run --vstream, not a rule */
};

static int choose(const struct preload_config* config, const char* path, int flags,
                  struct label* out) {
  if (config->vstream[0] != '\0') {
    *out = (struct label){"--vstream", config->vstream, 1};
    return 1;
  }
  if (config->profile == NULL) return 0;
  const struct stream_rule_match* match = stream_rules_match(config->profile, path, flags);
  if (match == NULL) return 0;
  *out = (struct label){match->pattern, match->vstream, 0};
  return 1;
}

/* A program's own hint wins over everything here, also one given in an earlier run. A rule moreover
 * yields to every name that is not itself a rule's: to a person's or a program's. A number without
 * a name yields: most such numbers are what the filesystem made up for itself. */
static int may_label(const struct streamfs_hint* file, const struct label* label) {
  if (stream_life_of(file) != RWH_WRITE_LIFE_NOT_SET) return 0;
  if (label->by_person || file->number == 0 || file->name[0] == '\0') return 1;
  return stream_rules_owns(file->name);
}

static int apply(int fd, const struct label* label) {
  struct streamfs_hint hint = {.command = STREAMFS_HINT_QUERY};
  const int asked = stream_ask(fd, &hint);
  if (asked != 0) return asked;
  hint.name[sizeof(hint.name) - 1] = '\0';
  if (!may_label(&hint, label)) return kKept;
  if (strcmp(hint.name, label->vstream) == 0) return kHonoured; /* the filesystem's own rule */
  memset(&hint, 0, sizeof(hint));
  hint.command = STREAMFS_HINT_NAME;
  memcpy(hint.name, label->vstream, strlen(label->vstream));
  return stream_ask(fd, &hint);
}

void preload_label(int fd, const char* path, int flags) {
  preload_forget_file_hint(fd);
  const struct preload_config* config = preload_config();
  struct label label;
  if (config != NULL && choose(config, path, flags, &label)) {
    preload_explain(fd, label.rule, label.vstream, apply(fd, &label));
  }
}
