/* Name rules: which vStream a file's name alone suggests.
 *
 * One table, evaluated in two places: by the preload library in a program that opens a file, and by
 * the filesystem at create for programs that cannot be preloaded. Pure functions over constant
 * tables: no allocation, no locale, no state; safe from any thread and from signal handlers.
 * What a rule says is a label. Lifetimes are measured, and a program's own hint always wins. */
#ifndef STREAMFS_LIBSTREAM_RULES_H
#define STREAMFS_LIBSTREAM_RULES_H

#ifdef __cplusplus
extern "C" {
#endif

struct stream_rule_match {
  const char* vstream; /* at most 31 bytes, made of [a-z-] */
  const char* pattern; /* the rule, for people to read: "*-journal" */
  unsigned rw_hint;    /* RWH_WRITE_LIFE_SHORT, _MEDIUM or _LONG */
};

struct stream_profile;

/* "default", "sqlite", "rocksdb", "postgresql". NULL for a name that is none of them. */
const struct stream_profile* stream_rules_profile(const char* name);

/* All names of profiles, NULL-terminated, "default" first. */
const char* const* stream_rules_profile_names(void);

/* The first rule that fits, or NULL. `profile` NULL stands for the default one.
 * `path` may be absolute or relative; rules look at its last component and at the one before it
 * (PostgreSQL's WAL is known by its folder, so pass "pg_wal/NAME", not "NAME", where it is known).
 * `flags` are open(2)'s. With O_TMPFILE the file has no name and `path` is not looked at. */
const struct stream_rule_match* stream_rules_match(const struct stream_profile* profile,
                                                   const char* path, int flags);

/* Whether some rule of some profile uses this vStream name: such a label came from a rule, not from
 * a person or a program. */
int stream_rules_owns(const char* vstream);

#ifdef __cplusplus
}
#endif

#endif
