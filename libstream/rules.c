#include "libstream/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>

#include "libstream/glob.h"
#include "libstream/profile.h"

/* The last component of a path and the one before it. Not NUL-terminated. */
struct tail {
  const char* name;
  size_t name_length;
  const char* parent;
  size_t parent_length;
};

/* The byte behind the last '/' of a path's first `length` bytes. */
static const char* start_of_last(const char* path, size_t length) {
  const char* at = path + length;
  while (at > path && at[-1] != '/') --at;
  return at;
}

/* The name, and where the parent's ends: what may_fit() looks at. */
static struct tail name_of(const char* path) {
  const size_t length = strlen(path);
  const char* name = start_of_last(path, length);
  const char* parent_end = name;
  while (parent_end > path && parent_end[-1] == '/') --parent_end;
  return (struct tail){name, length - (size_t)(name - path), path, (size_t)(parent_end - path)};
}

/* Takes off the parent what stands before it. */
static void find_parent(struct tail* tail) {
  const char* end = tail->parent + tail->parent_length;
  tail->parent = start_of_last(tail->parent, tail->parent_length);
  tail->parent_length = (size_t)(end - tail->parent);
}

static unsigned hash_of(unsigned char a, unsigned char b) {
  return (a * 4u + b * 9u) & 1023u;
}

static void put(uint64_t* set, unsigned bit) {
  set[bit >> 6] |= UINT64_C(1) << (bit & 63);
}

static int has(const uint64_t* set, unsigned bit) {
  return (int)(set[bit >> 6] >> (bit & 63) & 1);
}

static uint32_t word_of(unsigned a, unsigned b, unsigned c, unsigned d) {
  return a | b << 8 | c << 16 | d << 24;
}

/* The bytes of four that are not 0. */
static struct stream_rules_bytes asked_for(const unsigned char four[4]) {
  struct stream_rules_bytes asked = {word_of(four[0], four[1], four[2], four[3]), 0};
  for (unsigned i = 0; i < 4; ++i) {
    if (four[i] != 0) asked.mask |= 0xffu << 8 * i;
  }
  return asked;
}

static int is(uint32_t word, const struct stream_rules_bytes* asked) {
  return ((word ^ asked->bytes) & asked->mask) == 0;
}

/* Whether something that is looked for begins here; at least two bytes are left. */
static int is_inside(const struct stream_rules_cues* cues, const unsigned char* at, size_t left) {
  const uint32_t word = word_of(at[0], at[1], left > 2 ? at[2] : 0u, left > 3 ? at[3] : 0u);
  for (size_t i = 0; i < cues->inside_count; ++i) {
    if (is(word, &cues->inside[i])) return 1;
  }
  return 0;
}

/* A byte that any other may follow is not looked for: no profile of ours has such a pattern. */
static void add_inside(struct stream_rules_cues* cues, const unsigned char inside[4]) {
  if (is_inside(cues, inside, 4)) return; /* the cues already let its names pass */
  const int known = memchr(cues->begins, inside[0], cues->begins_count) != NULL;
  if (inside[1] == 0 || (!known && cues->begins_count == sizeof(cues->begins)) ||
      cues->inside_count == sizeof(cues->inside) / sizeof(cues->inside[0])) {
    cues->always = 1;
    return;
  }
  if (!known) cues->begins[cues->begins_count++] = inside[0];
  cues->inside[cues->inside_count++] = asked_for(inside);
}

/* A folder's name says more than a name's pattern where both are given: fewer files have it. */
static void add_cue(struct stream_rules_cues* cues, const struct stream_rule* rule) {
  const int by_folder = rule->directory != NULL;
  const struct stream_glob_cue cue = stream_glob_look(by_folder ? rule->directory : rule->name);
  if (cue.last[0] != 0 && cue.last[1] != 0) {
    put(by_folder ? cues->folder : cues->last, hash_of(cue.last[0], cue.last[1]));
  } else if (!by_folder && cue.first[1] != 0) {
    put(cues->first, hash_of(cue.first[0], cue.first[1]));
  } else if (!by_folder && cue.inside[0] != 0) {
    add_inside(cues, cue.inside);
  } else {
    cues->always = 1;
  }
}

/* Whether something that is looked for and begins with `byte` is in the name. */
static int has_inside(const struct stream_rules_cues* cues, unsigned char byte,
                      const unsigned char* name, size_t length) {
  for (; length > 1; ++name, --length) {
    if (*name == byte && is_inside(cues, name, length)) return 1;
  }
  return 0;
}

/* Most names fit no rule; this says so without looking at the rules, which the kernel has driven
 * out of the cache since the last open. It looks at the parent's end only. */
static int may_fit(const struct stream_rules_cues* cues, const struct tail* tail) {
  const unsigned char* name = (const unsigned char*)tail->name;
  const size_t length = tail->name_length;
  if (cues->always) return 1;
  if (length >= 2 && has(cues->first, hash_of(name[0], name[1]))) return 1;
  if (length >= 2 && has(cues->last, hash_of(name[length - 2], name[length - 1]))) return 1;
  const unsigned char* end = (const unsigned char*)tail->parent + tail->parent_length;
  if (tail->parent_length >= 2 && has(cues->folder, hash_of(end[-2], end[-1]))) return 1;
  for (size_t i = 0; i < cues->begins_count; ++i) {
    if (has_inside(cues, cues->begins[i], name, length)) return 1;
  }
  return 0;
}

enum { kThreadNameBytes = 16 }; /* the kernel's TASK_COMM_LEN */

static int fits_thread(const struct stream_rule* rule, const char* thread) {
  char own[kThreadNameBytes + 1] = "";
  if (thread == NULL) {
    const int errno_before = errno;
    prctl(PR_GET_NAME, own);
    errno = errno_before;
    thread = own;
  }
  return stream_glob_fits(rule->thread, thread, strlen(thread));
}

/* A name's first two and last two bytes. A shorter name has no bytes that a pattern asks for. */
static uint32_t ends_of(const char* name, size_t length) {
  const unsigned char* bytes = (const unsigned char*)name;
  if (length < 2) return 0;
  return word_of(bytes[0], bytes[1], bytes[length - 2], bytes[length - 1]);
}

static struct stream_rules_bytes ends_wanted(const char* pattern) {
  unsigned char ends[4] = {0, 0, 0, 0};
  if (pattern == NULL) return asked_for(ends);
  const struct stream_glob_cue cue = stream_glob_look(pattern);
  if (cue.first[1] != 0) memcpy(ends, cue.first, 2);
  if (cue.last[0] != 0 && cue.last[1] != 0) memcpy(ends + 2, cue.last, 2);
  return asked_for(ends);
}

static int fits_part(const char* pattern, const char* name, size_t length) {
  return pattern == NULL || stream_glob_fits(pattern, name, length);
}

/* The opener of the file. */
struct opener {
  const char* thread;
  const char* merges;
};

static int fits(const struct stream_rule* rule, const struct tail* tail,
                const struct opener* opener) {
  if (rule->merges != NULL && !stream_same_name(rule->merges, opener->merges)) return 0;
  return fits_part(rule->directory, tail->parent, tail->parent_length) &&
         fits_part(rule->name, tail->name, tail->name_length) &&
         (rule->thread == NULL || fits_thread(rule, opener->thread));
}

/* Nearly all rules part with a name at its ends. Apart, as few names come here. */
__attribute__((noinline)) static const struct stream_rule* find_rule(const struct stream_rules* set,
                                                                     struct tail* tail,
                                                                     const struct opener* opener) {
  find_parent(tail);
  const uint32_t name = ends_of(tail->name, tail->name_length);
  const uint32_t folder = ends_of(tail->parent, tail->parent_length);
  for (size_t i = 0; i < set->chosen_count; ++i) {
    const struct stream_rules_chosen* one = &set->chosen[i];
    if (is(name, &one->name) && is(folder, &one->folder) && fits(one->rule, tail, opener)) {
      return one->rule;
    }
  }
  return NULL;
}

const struct stream_rule* stream_rules_match(const struct stream_rules* set, const char* path,
                                             int flags, const char* thread) {
  return stream_rules_match_merging(set, path, flags, thread, NULL);
}

const struct stream_rule* stream_rules_match_merging(const struct stream_rules* set,
                                                     const char* path, int flags,
                                                     const char* thread, const char* merges) {
  if ((flags & O_TMPFILE) == O_TMPFILE) return set->nameless;
  if (set->chosen_count == 0) return NULL;
  struct tail tail = name_of(path);
  if (tail.name_length == 0 || !may_fit(&set->cues, &tail)) return NULL;
  const struct opener opener = {thread, merges};
  return find_rule(set, &tail, &opener);
}

static const struct stream_profile* find(const struct stream_rules* set, const char* name) {
  for (size_t i = 0; i < set->profile_count; ++i) {
    if (strcmp(set->profiles[i].name, name) == 0) return &set->profiles[i];
  }
  return NULL;
}

static void choose_rule(struct stream_rules* set, const struct stream_rule* rule) {
  if (rule->nameless) {
    if (set->nameless == NULL) set->nameless = rule;
    return;
  }
  if (set->chosen_count == STREAM_RULES_MAX) return;
  set->some_merge |= rule->merges != NULL;
  struct stream_rules_chosen* chosen = &set->chosen[set->chosen_count++];
  chosen->rule = rule;
  chosen->name = ends_wanted(rule->name);
  chosen->folder = ends_wanted(rule->directory);
  add_cue(&set->cues, rule);
}

/* Adds a profile's rules that hold `everywhere` only, or all of them. */
static void choose_profile(struct stream_rules* set, const struct stream_profile* profile,
                           int everywhere) {
  for (size_t i = 0; i < profile->count; ++i) {
    if (!everywhere || profile->rules[i].everywhere) choose_rule(set, &profile->rules[i]);
  }
}

int stream_rules_choose(struct stream_rules* set, const char* profile) {
  set->chosen_count = 0;
  set->some_merge = 0;
  set->nameless = NULL;
  memset(&set->cues, 0, sizeof(set->cues));
  if (profile != NULL && strcmp(profile, "default") != 0) {
    const struct stream_profile* one = find(set, profile);
    if (one != NULL) choose_profile(set, one, 0);
    return one == NULL ? -ENOENT : 0;
  }
  for (size_t i = 0; i < set->profile_count; ++i) {
    const struct stream_profile* one = &set->profiles[i];
    if (find(set, one->name) == one) choose_profile(set, one, 1);
  }
  return 0;
}

static const struct stream_rule* rule_of(const struct stream_rules* set, const char* vstream) {
  for (size_t i = 0; i < set->profile_count; ++i) {
    for (size_t r = 0; r < set->profiles[i].count; ++r) {
      const struct stream_rule* rule = &set->profiles[i].rules[r];
      if (strcmp(rule->vstream, vstream) == 0) return rule;
    }
  }
  return NULL;
}

int stream_rules_owns(const struct stream_rules* set, const char* vstream) {
  return rule_of(set, vstream) != NULL;
}

uint32_t stream_rules_life(const struct stream_rules* set, const char* vstream) {
  const struct stream_rule* rule = rule_of(set, vstream);
  return rule == NULL ? RWH_WRITE_LIFE_NOT_SET : rule->rw_hint;
}

void stream_rules_clear(struct stream_rules* set) {
  set->profile_count = set->chosen_count = set->rule_count = set->text_used = 0;
  set->some_merge = 0;
  set->nameless = NULL;
  memset(&set->cues, 0, sizeof(set->cues));
}

void stream_rules_load_built_in(struct stream_rules* set) {
  for (size_t i = 0; i < stream_built_in_count; ++i) {
    if (set->profile_count == STREAM_PROFILES_MAX) return;
    set->profiles[set->profile_count++] = stream_built_in_profiles[i];
  }
}

static size_t append(char* out, size_t length, const char* text) {
  while (*text != '\0' && length < STREAM_RULE_TEXT_BYTES - 1) out[length++] = *text++;
  out[length] = '\0';
  return length;
}

void stream_rule_text(const struct stream_rule* rule, char out[STREAM_RULE_TEXT_BYTES]) {
  size_t length = append(out, 0, rule->profile);
  length = append(out, length, "'s ");
  if (rule->nameless) length = append(out, length, "O_TMPFILE");
  if (rule->directory != NULL) {
    length = append(out, length, rule->directory);
    length = append(out, length, "/");
  }
  if (rule->name != NULL) length = append(out, length, rule->name);
  if (rule->thread != NULL) {
    length = append(out, length, " of thread ");
    length = append(out, length, rule->thread);
  }
  if (rule->merges == NULL) return;
  length = append(out, length, " merging ");
  append(out, length, rule->merges);
}
