#include "libstream/glob.h"

#include <string.h>

enum { kRepeatMax = 255 };

/* A step of a pattern: a literal, a set or '?'; never '*'. */
struct step {
  const char* set;    /* behind '['; NULL for a literal or '?' */
  const char* end;    /* of the step in the pattern; NULL: malformed */
  unsigned char byte; /* the literal, if `literal` */
  int literal, negated;
  size_t least, most;
};

static const char* read_number(const char* at, size_t* out) {
  const char* start = at;
  for (*out = 0; *at >= '0' && *at <= '9' && *out <= kRepeatMax; ++at) {
    *out = *out * 10 + (size_t)(*at - '0');
  }
  return at == start || *out > kRepeatMax ? NULL : at;
}

/* "{n}" or "{n,m}" behind a set. */
static void read_repeat(struct step* step) {
  const char* at = read_number(step->end + 1, &step->least);
  step->most = step->least;
  if (at != NULL && *at == ',') at = read_number(at + 1, &step->most);
  const int good = at != NULL && *at == '}' && step->most >= step->least && step->most > 0;
  step->end = good ? at + 1 : NULL;
}

/* The byte behind a set's last; a ']' right behind the '[' is one of the set. */
static void read_set(struct step* step, const char* at) {
  step->negated = *at == '!';
  if (step->negated) ++at;
  step->set = at;
  if (*at != '\0') ++at;
  while (*at != '\0' && *at != ']') ++at;
  step->end = *at == ']' ? at + 1 : NULL;
  if (step->end != NULL && *step->end == '{') read_repeat(step);
}

static struct step read_step(const char* at) {
  struct step step = {NULL, at + 1, 0, 0, 0, 1, 1};
  if (*at == '[') {
    read_set(&step, at + 1);
  } else if (*at == '\\') {
    step.byte = (unsigned char)at[1];
    step.literal = 1;
    step.end = at[1] == '\0' ? NULL : at + 2;
  } else if (*at != '?') {
    step.byte = (unsigned char)*at;
    step.literal = 1;
  }
  return step;
}

static int in_set(const struct step* step, unsigned char byte) {
  const unsigned char* at = (const unsigned char*)step->set;
  int found = 0;
  do {
    const int range = at[1] == '-' && at[2] != ']' && at[2] != '\0';
    found |= range ? at[0] <= byte && byte <= at[2] : at[0] == byte;
    at += range ? 3 : 1;
  } while (*at != ']' && *at != '\0');
  return found != step->negated;
}

static int takes(const struct step* step, char byte) {
  if (step->literal) return step->byte == (unsigned char)byte;
  return step->set == NULL || in_set(step, (unsigned char)byte);
}

/* How many bytes of the name a step takes; too few: -1. */
static long take(const struct step* step, const char* name, const char* end) {
  size_t taken = 0;
  while (taken < step->most && name + taken < end && takes(step, name[taken])) ++taken;
  return taken < step->least ? -1 : (long)taken;
}

static int is_plain(char byte) {
  return byte != '*' && byte != '?' && byte != '[' && byte != '\\' && byte != '\0';
}

/* Where from `name` on what follows a '*' may begin; NULL: nowhere. */
static const char* next_start(const char* pattern, const char* name, const char* end) {
  return is_plain(*pattern) ? memchr(name, *pattern, (size_t)(end - name)) : name;
}

/* A step of the pattern, and what it takes of the name. 0: it does not fit here. */
static int advance(const char** pattern, const char** name, const char* end) {
  if (is_plain(**pattern)) {
    if (*name == end || **name != **pattern) return 0;
    ++*pattern;
    ++*name;
    return 1;
  }
  const struct step step = read_step(*pattern);
  if (step.end == NULL) return 0;
  const long taken = take(&step, *name, end);
  if (taken < 0) return 0;
  *pattern = step.end;
  *name += taken;
  return 1;
}

/* Only the last '*' ever has to try again: what an earlier one took more, this one can take. */
int stream_glob_fits(const char* pattern, const char* name, size_t length) {
  const char* const end = name + length;
  const char* after_star = NULL;
  const char* star_name = NULL;
  for (;;) {
    if (*pattern == '*') {
      while (*pattern == '*') ++pattern;
      if (*pattern == '\0') return 1;
      after_star = pattern;
      star_name = next_start(pattern, name, end);
    } else if (*pattern == '\0' ? name == end : advance(&pattern, &name, end)) {
      if (*pattern == '\0' && name == end) return 1;
      continue;
    } else {
      if (after_star == NULL || star_name == end) return 0;
      star_name = next_start(after_star, star_name + 1, end);
    }
    if (star_name == NULL) return 0;
    pattern = after_star;
    name = star_name;
  }
}

const char* stream_glob_error(const char* pattern, size_t* at) {
  const char* next = pattern;
  *at = 0;
  if (*pattern == '\0') return "a pattern must not be empty";
  for (; *next != '\0'; *at = (size_t)(next - pattern)) {
    if (*next == '/') return "a pattern is of one name: no '/'";
    if (*next == '*') {
      ++next;
      continue;
    }
    const struct step step = read_step(next);
    if (step.end == NULL) {
      return *next == '[' ? "a set is [...], or [...]{n}, or [...]{n,m} with n <= m <= 255"
                          : "nothing behind the backslash";
    }
    next = step.end;
  }
  return NULL;
}

/* Bytes that stand together; 0 ends them. The more there are, the more they say. */
struct run {
  unsigned char bytes[4];
  size_t length;
};

static void look_inside(struct stream_glob_cue* cue, struct run* run, unsigned char byte) {
  if (byte == 0) {
    run->length = 0;
    return;
  }
  if (run->length == sizeof(run->bytes)) return;
  run->bytes[run->length++] = byte;
  if (cue->inside[run->length - 1] == 0) memcpy(cue->inside, run->bytes, run->length);
}

struct stream_glob_cue stream_glob_look(const char* pattern) {
  struct stream_glob_cue cue = {{0}, {0}, {0}};
  struct run run = {{0}, 0};
  size_t index = 0;
  for (; *pattern != '\0'; ++index) {
    struct step step = {NULL, pattern + 1, 0, 0, 0, 1, 1};
    if (*pattern != '*') step = read_step(pattern);
    if (step.end == NULL) return cue;
    const unsigned char byte = step.literal ? step.byte : 0;
    if (index == 0) cue.first[0] = byte;
    if (index == 1 && cue.first[0] != 0) cue.first[1] = byte;
    look_inside(&cue, &run, byte);
    cue.last[0] = cue.last[1];
    cue.last[1] = byte;
    pattern = step.end;
  }
  return cue;
}
