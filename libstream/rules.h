/* Name rules: which vStream a file's name alone suggests. Profiles hold them, streamfs-profiles(5).
 *
 * One text and one matcher, evaluated in two places: by the preload library in a program that opens
 * a file, and by the filesystem at create for programs that cannot be preloaded. The profiles in
 * libstream/profiles are compiled in (compile_profiles.c); others are read when a set is loaded.
 * What a rule says is a label. Lifetimes are measured, and a program's own hint always wins.
 *
 * No allocation and no locale: a set is one object of fixed size, for its owner to place. It is
 * filled by one thread; after that, everything that takes it const is safe from any thread and from
 * signal handlers. errno is untouched but by loading. */
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
  STREAM_RULES_MAX = 512,        /* of all profiles in a set together */
  STREAM_PROFILES_MAX = 96,      /* in a set */
  STREAM_PROFILES_BYTES = 65536, /* of all profiles read from files */
  STREAM_RULE_TEXT_BYTES = 192   /* what stream_rule_text() may need */
};
/* NOLINTEND(performance-enum-size) */

struct stream_rule {
  const char* profile;
  const char* name;      /* pattern (glob.h) of the last component; NULL: any */
  const char* directory; /* pattern of the one before it; NULL: any */
  const char* thread;    /* pattern of the thread's name; NULL: any */
  const char* merges;    /* vStream of files that the thread merges now; NULL: whatever it does */
  const char* vstream;   /* at most 31 bytes */
  uint8_t rw_hint;       /* RWH_WRITE_LIFE_*: what to expect until it is measured */
  uint8_t nameless;      /* of files opened with O_TMPFILE, and of no others */
  uint8_t everywhere;    /* also where nobody asked for the profile by name */
};

struct stream_profile {
  const char* name;
  const char* about; /* one line; may be NULL */
  const struct stream_rule* rules;
  size_t count;
};

/* What a pattern says of four bytes of all that fits. */
struct stream_rules_bytes {
  uint32_t bytes, mask;
};

/* What the chosen rules say of all names that fit (glob.h's cues): pairs of bytes as hashed sets,
 * and what stands together inside. */
struct stream_rules_cues {
  int always;
  unsigned char begins[6], begins_count; /* the first bytes of what is in `inside` */
  unsigned char inside_count;
  struct stream_rules_bytes inside[16];
  uint64_t first[16], last[16], folder[16];
};

struct stream_rules_chosen {
  const struct stream_rule* rule;
  struct stream_rules_bytes name, folder; /* the first two and the last two */
};

struct stream_rules {
  /* What a name that no rule knows is looked up in. */
  size_t chosen_count;
  int some_merge;                     /* of the chosen ones */
  const struct stream_rule* nameless; /* of the chosen ones; may be NULL */
  struct stream_rules_cues cues;
  struct stream_rules_chosen chosen[STREAM_RULES_MAX];
  struct stream_profile profiles[STREAM_PROFILES_MAX]; /* the first of a name counts */
  size_t profile_count;
  struct stream_rule rules[STREAM_RULES_MAX]; /* of profiles read from files */
  size_t rule_count;
  char text[STREAM_PROFILES_BYTES]; /* the files, read in place */
  size_t text_used;
};

/* Told of each thing wrong in a profile; line 0: the file or folder as a whole. */
typedef void (*stream_rules_report)(void* context, const char* file, unsigned line, unsigned column,
                                    const char* what);

/* An empty set. What is loaded first hides what comes later under the same name. */
void stream_rules_clear(struct stream_rules* set);

/* Adds FOLDER/NAME.toml as profile NAME, for all in byte order of names. A folder that is not there
 * holds none. What is wrong is reported and left out; the rest loads. `report` may be NULL. */
void stream_rules_load_folder(struct stream_rules* set, const char* folder,
                              stream_rules_report report, void* context);
/* Adds one file. 0 or -errno of reading it; what is wrong in it is only reported. */
int stream_rules_load_file(struct stream_rules* set, const char* path, stream_rules_report report,
                           void* context);
/* Adds what is compiled in. */
void stream_rules_load_built_in(struct stream_rules* set);

/* Loads all that a program of this user may choose from: $STREAMFS_PROFILE if that is a path, the
 * user's folder, STREAM_PROFILES_FOLDER, what is built in. Variables of privileged programs are not
 * looked at. Returns the profile that the environment asks for; NULL: none, which is "default". */
const char* stream_rules_load_all(struct stream_rules* set, stream_rules_report report,
                                  void* context);

/* Says which rules match from now on: the profile's, or for NULL and "default" those of all
 * profiles that hold everywhere. -ENOENT, and no rules, where there is no such profile. */
int stream_rules_choose(struct stream_rules* set, const char* profile);

/* The first chosen rule that fits, or NULL.
 * `path` may be absolute or relative; rules look at its last component and at the one before it
 * (PostgreSQL's WAL is known by its folder, so pass "pg_wal/NAME", not "NAME", where it is known).
 * `flags` are open(2)'s. With O_TMPFILE the file has no name and `path` is not looked at.
 * `thread` is the name of the thread that opens the file; NULL: of the one that calls. */
const struct stream_rule* stream_rules_match(const struct stream_rules* set, const char* path,
                                             int flags, const char* thread);

/* The same in a thread that merges files of the vStream `merges`, stream_rules_merge(); NULL: none.
 */
const struct stream_rule* stream_rules_match_merging(const struct stream_rules* set,
                                                     const char* path, int flags,
                                                     const char* thread, const char* merges);

/* What a thread merges that did merge `merges` (NULL: nothing) and now begins to read a file of the
 * vStream `input`, as the first of a merge (`begins`) or one more of it. An LSM tree merges files
 * of one level, or those and files of the next, into new ones of the next; rules say which is next.
 * What is merged is the upper one. NULL: none that rules speak of. */
const char* stream_rules_merge(const struct stream_rules* set, const char* merges,
                               const char* input, int begins);

/* Whether some rule of some profile of the set uses this vStream name: such a label came from a
 * rule, not from a person or a program. */
int stream_rules_owns(const struct stream_rules* set, const char* vstream);

/* RWH_WRITE_LIFE_* that the first rule with this vStream name expects; "not set": none does. */
uint32_t stream_rules_life(const struct stream_rules* set, const char* vstream);

/* The rule for people to read: "sqlite's *-journal". Always ends in a NUL. */
void stream_rule_text(const struct stream_rule* rule, char out[STREAM_RULE_TEXT_BYTES]);

/* Two names that are there and alike. */
static inline int stream_same_name(const char* a, const char* b) {
  return a != NULL && b != NULL && strcmp(a, b) == 0;
}

#ifdef __cplusplus
}
#endif

#endif
