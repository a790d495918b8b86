#include "libstream/rules.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>

enum rule_kind {
  kNamePrefix,   /* "text*" */
  kNameSuffix,   /* "*text" */
  kNameContains, /* "*text*" */
  kNameDigits,   /* so many decimal digits, then text, and nothing else */
  kParentIs,     /* the folder is called text */
  kParentPrefix, /* the folder is called "text*" */
  kNameless      /* O_TMPFILE */
};

struct rule {
  struct stream_rule_match match;
  enum rule_kind kind;
  const char* text;
  size_t length;
  size_t digits_min, digits_max; /* kNameDigits only */
};

struct group {
  const struct rule* rules;
  size_t count;
};

struct stream_profile {
  const char* name;
  struct group groups[6];
};

#define RULE(kind, text, pattern, vstream, life) \
  {{vstream, pattern, RWH_WRITE_LIFE_##life}, kind, text, sizeof(text) - 1, 0, 0}
#define NUMBERED(min, max, text, pattern, vstream, life) \
  {{vstream, pattern, RWH_WRITE_LIFE_##life}, kNameDigits, text, sizeof(text) - 1, min, max}

/* A statement journal, a TEMP database, a materialised view, a transient index and VACUUM's copy
 * are all called etilqs_<hex> and opened alike: one label for the five. "-mj" stands last: a
 * journal of a database with "-mj" in its name is still a journal. */
static const struct rule kSqliteRules[] = {
    RULE(kNamePrefix, "etilqs_", "etilqs_*", "sqlite-temp", SHORT),
    RULE(kNameSuffix, "-journal", "*-journal", "sqlite-journal", SHORT),
    RULE(kNameSuffix, "-wal", "*-wal", "sqlite-wal", MEDIUM),
    RULE(kNameSuffix, "-shm", "*-shm", "sqlite-shm", MEDIUM),
    RULE(kNameContains, "-mj", "*-mj*", "sqlite-super-journal", SHORT),
};

/* Temporary files stand in pgsql_tmp/, and those that processes share one folder deeper, in
 * pgsql_tmpPID.N.fileset/. */
static const struct rule kPostgresqlRules[] = {
    RULE(kParentIs, "pg_wal", "pg_wal/", "pg-wal", MEDIUM),
    RULE(kNamePrefix, "pgsql_tmp", "pgsql_tmp*", "pg-temp", SHORT),
    RULE(kParentPrefix, "pgsql_tmp", "pgsql_tmp*/", "pg-temp", SHORT),
};

/* RocksDB pads file numbers to six digits and lets them grow. Where nothing says that the program
 * is RocksDB, only the six: 20240131.log is somebody's log of a day. */
static const struct rule kRocksdbNamesAnywhere[] = {
    NUMBERED(6, 6, ".log", "NNNNNN.log", "rocksdb-wal", SHORT),
    RULE(kNameSuffix, ".sst", "*.sst", "rocksdb-sst", LONG),
};
static const struct rule kRocksdbRules[] = {
    NUMBERED(6, 19, ".log", "NNNNNN.log", "rocksdb-wal", SHORT),
    RULE(kNameSuffix, ".sst", "*.sst", "rocksdb-sst", LONG),
};

static const struct rule kMysqlRules[] = {
    RULE(kNamePrefix, "#sql", "#sql*", "mysql-temp", SHORT),
    RULE(kNamePrefix, "ib_logfile", "ib_logfile*", "mysql-redo", MEDIUM),
    RULE(kNamePrefix, "#ib_redo", "#ib_redo*", "mysql-redo", MEDIUM),
    RULE(kNamePrefix, "binlog.", "binlog.*", "mysql-binlog", MEDIUM),
};

static const struct rule kKafkaRules[] = {
    NUMBERED(20, 20, ".log", "20 digits.log", "kafka-log", LONG),
};

static const struct rule kNamelessRules[] = {
    RULE(kNameless, "", "O_TMPFILE", "tmpfile", SHORT),
};

#define GROUP(rules) {rules, sizeof(rules) / sizeof(rules[0])}

static const struct stream_profile kProfiles[] = {
    {"default",
     {GROUP(kSqliteRules), GROUP(kPostgresqlRules), GROUP(kRocksdbNamesAnywhere),
      GROUP(kMysqlRules), GROUP(kKafkaRules), GROUP(kNamelessRules)}},
    {"sqlite", {GROUP(kSqliteRules)}},
    {"rocksdb", {GROUP(kRocksdbRules)}},
    {"postgresql", {GROUP(kPostgresqlRules)}},
};
enum {
  kProfileCount = sizeof(kProfiles) / sizeof(kProfiles[0]),
  kGroupCount = sizeof(kProfiles[0].groups) / sizeof(kProfiles[0].groups[0])
};

static const char* const kProfileNames[] = {"default", "sqlite", "rocksdb", "postgresql", NULL};
_Static_assert(sizeof(kProfileNames) / sizeof(kProfileNames[0]) == kProfileCount + 1,
               "one name a profile");

/* The last component of a path and the one before it. Not NUL-terminated. */
struct tail {
  const char* name;
  size_t name_length;
  const char* parent;
  size_t parent_length;
  int dash; /* a '-' somewhere in the name */
};

static struct tail tail_of(const char* path) {
  const size_t length = strlen(path);
  size_t start = length;
  int dash = 0;
  for (; start > 0 && path[start - 1] != '/'; --start) dash |= path[start - 1] == '-';
  size_t parent_end = start;
  while (parent_end > 0 && path[parent_end - 1] == '/') --parent_end;
  size_t parent_start = parent_end;
  while (parent_start > 0 && path[parent_start - 1] != '/') --parent_start;
  return (struct tail){path + start, length - start, path + parent_start, parent_end - parent_start,
                       dash};
}

/* Most names fit no rule; this says so without reading the tables, which the kernel has driven out
 * of the cache since the last open: the first and last letters of all rules above. */
static int may_fit(const struct tail* tail) {
  switch (tail->name[0]) {
    case 'e': /* etilqs_ */
    case 'p': /* pgsql_tmp */
    case 'i': /* ib_logfile */
    case 'b': /* binlog. */
    case '#': /* #sql, #ib_redo */
      return 1;
    default:
      break;
  }
  const unsigned char* end = (const unsigned char*)tail->name + tail->name_length;
  const int two = tail->name_length < 2 ? 0 : end[-2] << 8 | end[-1];
  switch (two) {
    case 'a' << 8 | 'l': /* -journal, -wal */
    case 'h' << 8 | 'm': /* -shm */
    case 'o' << 8 | 'g': /* .log */
    case 's' << 8 | 't': /* .sst */
      return 1;
    default:
      break;
  }
  const int pg_folder = tail->parent_length > 1 && tail->parent[0] == 'p' && tail->parent[1] == 'g';
  return tail->dash || pg_folder; /* -mj; pg_wal, pgsql_tmp */
}

static int starts_with(const char* name, size_t length, const struct rule* rule) {
  return length >= rule->length && memcmp(name, rule->text, rule->length) == 0;
}

static int ends_with(const char* name, size_t length, const struct rule* rule) {
  return length >= rule->length &&
         memcmp(name + length - rule->length, rule->text, rule->length) == 0;
}

static int is_numbered(const char* name, size_t length, const struct rule* rule) {
  if (!ends_with(name, length, rule)) return 0;
  const size_t digits = length - rule->length;
  if (digits < rule->digits_min || digits > rule->digits_max) return 0;
  for (size_t i = 0; i < digits; ++i) {
    if (name[i] < '0' || name[i] > '9') return 0;
  }
  return 1;
}

static int fits(const struct rule* rule, const struct tail* tail) {
  switch (rule->kind) {
    case kNamePrefix:
      return starts_with(tail->name, tail->name_length, rule);
    case kNameSuffix:
      return ends_with(tail->name, tail->name_length, rule);
    case kNameContains:
      return memmem(tail->name, tail->name_length, rule->text, rule->length) != NULL;
    case kNameDigits:
      return is_numbered(tail->name, tail->name_length, rule);
    case kParentIs:
      return tail->parent_length == rule->length && starts_with(tail->parent, rule->length, rule);
    case kParentPrefix:
      return starts_with(tail->parent, tail->parent_length, rule);
    case kNameless:
      return 0;
  }
  return 0;
}

static const struct stream_rule_match* match_nameless(const struct stream_profile* profile) {
  for (size_t g = 0; g < kGroupCount; ++g) {
    const struct group* group = &profile->groups[g];
    for (size_t r = 0; r < group->count; ++r) {
      if (group->rules[r].kind == kNameless) return &group->rules[r].match;
    }
  }
  return NULL;
}

const struct stream_profile* stream_rules_profile(const char* name) {
  for (size_t p = 0; p < kProfileCount; ++p) {
    if (strcmp(kProfiles[p].name, name) == 0) return &kProfiles[p];
  }
  return NULL;
}

const char* const* stream_rules_profile_names(void) {
  return kProfileNames;
}

const struct stream_rule_match* stream_rules_match(const struct stream_profile* profile,
                                                   const char* path, int flags) {
  if (profile == NULL) profile = &kProfiles[0];
  if ((flags & O_TMPFILE) == O_TMPFILE) return match_nameless(profile);
  const struct tail tail = tail_of(path);
  if (tail.name_length == 0 || !may_fit(&tail)) return NULL;
  for (size_t g = 0; g < kGroupCount; ++g) {
    const struct group* group = &profile->groups[g];
    for (size_t r = 0; r < group->count; ++r) {
      if (fits(&group->rules[r], &tail)) return &group->rules[r].match;
    }
  }
  return NULL;
}

int stream_rules_owns(const char* vstream) {
  for (size_t p = 0; p < kProfileCount; ++p) {
    for (size_t g = 0; g < kGroupCount; ++g) {
      const struct group* group = &kProfiles[p].groups[g];
      for (size_t r = 0; r < group->count; ++r) {
        if (strcmp(group->rules[r].match.vstream, vstream) == 0) return 1;
      }
    }
  }
  return 0;
}
