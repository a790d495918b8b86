/* Which label a file just opened gets, and whether it may have it. */
#include <string.h>

#include "libstream/mount.h"
#include "libstream/preload.h"

struct label {
  const struct stream_rule* rule; /* NULL: stream-run --vstream, a person's choice */
  const char* vstream;
};

static int choose(const struct preload_config* config, const char* path, int flags,
                  struct label* out) {
  if (config->vstream[0] != '\0') {
    *out = (struct label){NULL, config->vstream};
    return 1;
  }
  const struct stream_rule* rule = stream_rules_match(&config->rules, path, flags, NULL);
  if (rule == NULL) return 0;
  *out = (struct label){rule, rule->vstream};
  return 1;
}

/* A program's own hint wins over everything here, also one given in an earlier run. A rule moreover
 * yields to every name that is not itself a rule's: to a person's or a program's. A number without
 * a name yields: most such numbers are what the filesystem made up for itself. */
static int may_label(const struct preload_config* config, const struct streamfs_hint* file,
                     const struct label* label) {
  if (stream_life_of(file) != RWH_WRITE_LIFE_NOT_SET) return 0;
  if (label->rule == NULL || file->number == 0 || file->name[0] == '\0') return 1;
  return stream_rules_owns(&config->rules, file->name);
}

static int apply(const struct preload_config* config, int fd, const struct label* label) {
  struct streamfs_hint hint = {.command = STREAMFS_HINT_QUERY};
  const int asked = stream_ask(fd, &hint);
  if (asked != 0) return asked;
  hint.name[sizeof(hint.name) - 1] = '\0';
  if (!may_label(config, &hint, label)) return kKept;
  if (strcmp(hint.name, label->vstream) == 0) return kHonoured; /* the filesystem's own rule */
  memset(&hint, 0, sizeof(hint));
  hint.command = STREAMFS_HINT_NAME;
  memcpy(hint.name, label->vstream, strlen(label->vstream));
  return stream_ask(fd, &hint);
}

static void explain(const struct preload_config* config, int fd, const struct label* label,
                    int outcome) {
  if (config->explain[0] == '\0') return;
  char text[STREAM_RULE_TEXT_BYTES] = "--vstream";
  if (label->rule != NULL) stream_rule_text(label->rule, text);
  preload_explain(fd, text, label->vstream, outcome);
}

void preload_label(int fd, const char* path, int flags) {
  if (atomic_load_explicit(&preload_file_hints, memory_order_relaxed)) {
    preload_forget_file_hint(fd);
  }
  const struct preload_config* config = preload_config();
  struct label label;
  if (config != NULL && choose(config, path, flags, &label)) {
    explain(config, fd, &label, apply(config, fd, &label));
  }
}
