/* Which label a file just opened gets, and whether it may have it. */
#include "libstream/preload_label.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "libstream/mount.h"
#include "libstream/preload.h"
#include "libstream/preload_advise.h"
#include "libstream/preload_explain.h"
#include "libstream/preload_fcntl.h"
#include "libstream/preload_known.h"

struct label {
  const struct stream_rule* rule; /* NULL: stream-run --vstream, a person's choice */
  const char* vstream;
};

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

/* How the offer ended. Another filesystem is not asked again, and its folder neither. */
static int apply_on(const struct preload_config* config, int fd, const char* path,
                    const struct label* label) {
  struct stat status;
  const int errno_before = errno;
  const int regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  errno = errno_before;
  if (!regular) return kNotStreamfs;
  if (!stream_is_foreign(status.st_dev)) return apply(config, fd, label);
  preload_folder_turned_out_foreign(path, status.st_dev);
  return kNotStreamfs;
}

/* A label that the file has or was refused is not offered again for some seconds: the question
 * waits for the filesystem, ten times as long as the open. */
static void apply_once(const struct preload_config* config, int fd, const char* path,
                       const struct label* label) {
  if (preload_folder_is_foreign(path)) return;
  const uint64_t offer = preload_offer(fd, label->vstream);
  if (!preload_is_settled(offer) && apply_on(config, fd, path, label) >= 0) preload_settle(offer);
}

static void explain(const struct preload_config* config, int fd, const struct label* label) {
  const int outcome = apply(config, fd, label);
  char text[STREAM_RULE_TEXT_BYTES] = "--vstream";
  if (label->rule != NULL) stream_rule_text(label->rule, text);
  preload_explain(fd, text, label->vstream, outcome);
}

/* Apart, so that what nearly every open for writing runs through needs no room for it. */
__attribute__((noinline)) static void label_file(const struct preload_config* config, int fd,
                                                 const char* path, const struct stream_rule* rule) {
  const struct label label = {rule, rule == NULL ? config->vstream : rule->vstream};
  if (config->explain[0] != '\0') {
    explain(config, fd, &label);
  } else {
    apply_once(config, fd, path, &label);
  }
}

void preload_label(int fd, const char* path, int flags) {
  if (atomic_load_explicit(&preload_at_hand.file_hints, memory_order_relaxed)) {
    preload_forget_file_hint(fd);
  }
  const struct preload_config* config = preload_config();
  if (config == NULL) return;
  const struct stream_rule* rule = NULL;
  if (config->vstream[0] == '\0') {
    rule = stream_rules_match_merging(&config->rules, path, flags, NULL, preload_merges);
    if (rule == NULL) return;
  }
  label_file(config, fd, path, rule);
}
