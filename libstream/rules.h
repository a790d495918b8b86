/* Name rules: each maps file names to a vStream. Profiles contain them, streamfs-profiles(5).
 *
 * The same rules are matched in two places: by the preload library in a program that opens a file,
 * and by the filesystem at create for programs that cannot be preloaded. The profiles in
 * libstream/profiles are compiled in (compile_profiles.c); others are read when a set is loaded. A
 * program's own hint takes precedence over a rule.
 *
 * A set is one object of fixed size, without allocation. To use one: clear, load, choose, match.
 * Thread safety: one thread loads and chooses; functions that take a const set are then safe in any
 * thread and signal handler. Only loading changes errno. */
#ifndef STREAMFS_LIBSTREAM_RULES_H
#define STREAMFS_LIBSTREAM_RULES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libstream/glob.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STREAM_PROFILES_FOLDER "/etc/streamfs/profiles.d"

/* NOLINTBEGIN(performance-enum-size): C's */
enum stream_rules_limits {
  STREAM_RULES_MAX = 512,        /* of all profiles read from files; also the most chosen rules */
  STREAM_PROFILES_MAX = 96,      /* in a set */
  STREAM_PROFILES_BYTES = 65536, /* of all profiles read from files */
  STREAM_RULE_TEXT_BYTES = 192   /* size of the buffer of stream_rule_text() */
};
/* NOLINTEND(performance-enum-size) */

struct stream_rule {
  const char* profile;
  const char* name;      /* pattern (glob.h) of the last component; NULL: any */
  const char* directory; /* pattern of the component before it; NULL: any */
  const char* thread;    /* pattern of the thread's name; NULL: any */
  const char* merges;    /* vStream of the files that the thread is merging; NULL: any or none */
  const char* vstream;   /* at most 31 bytes */
  uint8_t rw_hint;       /* RWH_WRITE_LIFE_*: expected lifetime until one is measured */
  uint8_t nameless;      /* matches files opened with O_TMPFILE, and no others */
  uint8_t everywhere;    /* also active if the profile is not chosen by name */
};

struct stream_profile {
  const char* name;
  const char* about; /* one line; may be NULL */
  const struct stream_rule* rules;
  size_t count;
};

/* Bytes that every match of a pattern has, at the positions set in `mask`. */
struct stream_rules_bytes {
  uint32_t bytes, mask;
};

/* A filter that rejects most names before any rule is tried. It consists of the cues of the chosen
 * rules (glob.h): hashed sets of the first two and last two bytes of a name and the last two of its
 * folder, and strings inside a name. */
struct stream_rules_cues {
  int always;                            /* passes every name */
  unsigned char begins[6], begins_count; /* the first bytes of the strings in `inside` */
  unsigned char inside_count;
  struct stream_rules_bytes inside[16];
  uint64_t first[16], last[16], folder[16];
};

struct stream_rules_chosen {
  const struct stream_rule* rule;
  struct stream_rules_bytes name, folder; /* the first two and the last two bytes */
};

struct stream_rules {
  /* These fields suffice to reject a name that no rule matches. */
  size_t chosen_count;
  int some_merge;                     /* a chosen rule has `merges` */
  const struct stream_rule* nameless; /* the first chosen rule for O_TMPFILE; may be NULL */
  struct stream_rules_cues cues;
  struct stream_rules_chosen chosen[STREAM_RULES_MAX];
  struct stream_profile profiles[STREAM_PROFILES_MAX]; /* the first of a name hides the others */
  size_t profile_count;
  struct stream_rule rules[STREAM_RULES_MAX]; /* of profiles read from files */
  size_t rule_count;
  char text[STREAM_PROFILES_BYTES]; /* the files, read in place */
  size_t text_used;
};

/* Receives each error in a profile. Line 0: the error concerns the whole file or folder. */
typedef void (*stream_rules_report)(void* context, const char* file, unsigned line, unsigned column,
                                    const char* what);

/* Makes the set empty. The first profile of a name that is loaded hides later ones. */
void stream_rules_clear(struct stream_rules* set);

/* Adds each FOLDER/NAME.toml as profile NAME, in byte order of names. A missing folder counts as
 * empty. Rules and files with errors are reported and left out. `report` may be NULL. */
void stream_rules_load_folder(struct stream_rules* set, const char* folder,
                              stream_rules_report report, void* context);
/* Adds one file. Returns 0, or -errno if it cannot be read; -EFBIG: the set has no room for it;
 * -EILSEQ: it has a NUL byte. Errors in its rules are reported. */
int stream_rules_load_file(struct stream_rules* set, const char* path, stream_rules_report report,
                           void* context);
/* Adds the built-in profiles, as far as STREAM_PROFILES_MAX allows. */
void stream_rules_load_built_in(struct stream_rules* set);

/* Clears the set and loads the profiles that a program of this user may choose from:
 * $STREAMFS_PROFILE if that is a path, the user's folder, STREAM_PROFILES_FOLDER, the built-in
 * ones. Ignores the environment of a privileged program. Keeps errno. Returns the name of the
 * profile that the environment asks for; NULL if it asks for none, which means "default". */
const char* stream_rules_load_all(struct stream_rules* set, stream_rules_report report,
                                  void* context);

/* Chooses the rules that stream_rules_match() tries: all rules of the profile or, for NULL and
 * "default", the rules of all profiles that have `everywhere`. Leaves out rules beyond
 * STREAM_RULES_MAX. Returns 0; for an unknown profile chooses no rules and returns -ENOENT. */
int stream_rules_choose(struct stream_rules* set, const char* profile);

/* Returns the first chosen rule that matches, or NULL.
 * `path` may be absolute or relative. Rules look at its last component and the one before it, so
 * pass "pg_wal/NAME" rather than "NAME" if the folder is known.
 * `flags` are those of open(2). With O_TMPFILE only the nameless rule matches, and neither `path`
 * nor `thread` counts. `thread` is the name of the thread that opens the file; NULL: the calling
 * one. */
const struct stream_rule* stream_rules_match(const struct stream_rules* set, const char* path,
                                             int flags, const char* thread);

/* Does the same for a thread that merges files of the vStream `merges` (stream_rules_merge());
 * NULL: it merges none. */
const struct stream_rule* stream_rules_match_merging(const struct stream_rules* set,
                                                     const char* path, int flags,
                                                     const char* thread, const char* merges);

/* Follows a merge of an LSM tree. A thread merges files of one level, or of a level and the next
 * one, into new files of the next level. A rule's `merges` names the upper level's vStream, its
 * `vstream` the next level's. Call this when the thread begins to read a file of the vStream
 * `input`. `begins`: the file is the first of a merge. `merges`: the result for the file before it;
 * NULL: none. Returns the upper level's vStream, for stream_rules_match_merging(). If no chosen
 * rule knows `input`, returns NULL for the first file of a merge, else `merges`. */
const char* stream_rules_merge(const struct stream_rules* set, const char* merges,
                               const char* input, int begins);

/* Returns whether any rule of the set, chosen or not, has this vStream name. If so, a file's label
 * of that name probably came from a rule, not from a person or a program. */
int stream_rules_owns(const struct stream_rules* set, const char* vstream);

/* Returns the RWH_WRITE_LIFE_* of the set's first rule, chosen or not, with this vStream name;
 * RWH_WRITE_LIFE_NOT_SET if there is none. */
uint32_t stream_rules_life(const struct stream_rules* set, const char* vstream);

/* Writes the rule for people: "sqlite's *-journal". Truncates a long text. */
void stream_rule_text(const struct stream_rule* rule, char out[STREAM_RULE_TEXT_BYTES]);

/* Returns whether neither name is NULL and both are equal. */
static inline int stream_same_name(const char* a, const char* b) {
  return a != NULL && b != NULL && strcmp(a, b) == 0;
}

#ifdef __cplusplus
}
#endif

#endif
