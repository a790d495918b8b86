/* Where profiles lie, and which one the environment asks for. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "libstream/profile.h"

/* $XDG_CONFIG_HOME/streamfs/profiles.d, or in ~/.config; relative values are to be ignored. */
static void load_users_folder(struct stream_rules* set, stream_rules_report report, void* context) {
  char folder[PATH_MAX];
  const char* base = secure_getenv("XDG_CONFIG_HOME");
  const char* below = "streamfs/profiles.d";
  if (base == NULL || base[0] != '/') {
    base = secure_getenv("HOME");
    below = ".config/streamfs/profiles.d";
  }
  if (base == NULL || base[0] != '/' || stream_join_path(folder, base, below) != 0) return;
  stream_rules_load_folder(set, folder, report, context);
}

/* The name of the profile that a path gave; the path itself, which names none, if it gave none. */
static const char* load_asked(struct stream_rules* set, const char* path,
                              stream_rules_report report, void* context) {
  const int loaded = stream_rules_load_file(set, path, report, context);
  if (loaded == 0) return set->profiles[0].name;
  if (report != NULL) report(context, path, 0, 0, stream_words_for_load(loaded));
  return path;
}

const char* stream_rules_load_all(struct stream_rules* set, stream_rules_report report,
                                  void* context) {
  const int errno_before = errno;
  const char* asked = secure_getenv("STREAMFS_PROFILE");
  stream_rules_clear(set);
  if (asked != NULL && strchr(asked, '/') != NULL) {
    asked = load_asked(set, asked, report, context);
  }
  load_users_folder(set, report, context);
  stream_rules_load_folder(set, STREAM_PROFILES_FOLDER, report, context);
  stream_rules_load_built_in(set);
  errno = errno_before;
  return asked;
}
