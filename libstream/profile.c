#include "libstream/profile.h"

#include <fcntl.h>
#include <string.h>

#include "libstream/glob.h"
#include "libstream/toml.h"

enum { kNamesMax = 64 };

/* A rule while its keys come in. */
struct draft {
  struct stream_rule rule;
  const char* names[kNamesMax]; /* each becomes a rule */
  size_t name_count;
  unsigned keys; /* seen, a bit each */
  unsigned line; /* of [[rule]]; 0: before the first */
  unsigned column;
  int broken; /* said already */
};

struct parser {
  struct stream_rules* set;
  struct stream_profile* profile;
  struct draft draft;
  int everywhere; /* the profile's */
  unsigned profile_keys;
  struct stream_toml toml;
  const char* file;
  stream_rules_report report;
  void* context;
};

static void say(struct parser* parser, unsigned line, unsigned column, const char* what) {
  if (parser->report != NULL) parser->report(parser->context, parser->file, line, column, what);
}

/* Reports an error at the reader's place; in a rule, all of the rule is left out. */
static void wrong(struct parser* parser, const char* what) {
  say(parser, parser->toml.line, parser->toml.column, what);
  parser->draft.broken = 1;
}

static int life_of(const char* text) {
  static const char* const kLives[] = {"none", "short", "medium", "long", "extreme"};
  for (int i = 0; i < 5; ++i) {
    if (strcmp(text, kLives[i]) == 0) return RWH_WRITE_LIFE_NONE + i;
  }
  return -1;
}

/* Each takes what was just read; NULL, or what is wrong with it. */
static const char* take_pattern(struct parser* parser, const char** out) {
  size_t at;
  const char* error = stream_glob_error(parser->toml.text, &at);
  if (error != NULL) parser->toml.column += (unsigned)at + 1; /* behind the quote */
  *out = parser->toml.text;
  return error;
}

static const char* take_name(struct parser* parser) {
  struct draft* draft = &parser->draft;
  if (draft->name_count == kNamesMax) return "more than 64 names in a rule";
  return take_pattern(parser, &draft->names[draft->name_count++]);
}

static const char kNoVStream[] =
    "a vStream's name has 1 to 31 bytes, no '/' or control character, not only digits";

static const char* take_vstream(struct parser* parser) {
  parser->draft.rule.vstream = parser->toml.text;
  if (stream_name_check(parser->toml.text) == 0) return NULL;
  return kNoVStream;
}

static const char* take_life(struct parser* parser) {
  const int life = life_of(parser->toml.text);
  parser->draft.rule.rw_hint = (uint8_t)life;
  return life < 0 ? "a life is none, short, medium, long or extreme" : NULL;
}

static const char* take_nameless(struct parser* parser) {
  parser->draft.rule.nameless = (uint8_t)parser->toml.value;
  return NULL;
}

static const char* take_directory(struct parser* parser) {
  return take_pattern(parser, &parser->draft.rule.directory);
}

static const char* take_thread(struct parser* parser) {
  return take_pattern(parser, &parser->draft.rule.thread);
}

static const char* take_merges(struct parser* parser) {
  parser->draft.rule.merges = parser->toml.text;
  return stream_name_check(parser->toml.text) == 0 ? NULL : kNoVStream;
}

static const char* take_everywhere(struct parser* parser) {
  if (parser->draft.line == 0) parser->everywhere = parser->toml.value;
  parser->draft.rule.everywhere = (uint8_t)parser->toml.value;
  return NULL;
}

static const char* take_about(struct parser* parser) {
  parser->profile->about = parser->toml.text;
  return NULL;
}

static const struct key {
  const char* name;
  enum stream_toml_kind kind;
  int in_profile, in_rule, in_array;
  const char* (*take)(struct parser*);
} kKeys[] = {
    {"about", STREAM_TOML_STRING, 1, 0, 0, take_about},
    {"everywhere", STREAM_TOML_BOOL, 1, 1, 0, take_everywhere},
    {"name", STREAM_TOML_STRING, 0, 1, 1, take_name},
    {"directory", STREAM_TOML_STRING, 0, 1, 0, take_directory},
    {"thread", STREAM_TOML_STRING, 0, 1, 0, take_thread},
    {"merges", STREAM_TOML_STRING, 0, 1, 0, take_merges},
    {"nameless", STREAM_TOML_BOOL, 0, 1, 0, take_nameless},
    {"vstream", STREAM_TOML_STRING, 0, 1, 0, take_vstream},
    {"life", STREAM_TOML_STRING, 0, 1, 0, take_life},
};
enum { kKeyCount = sizeof(kKeys) / sizeof(kKeys[0]) };

static const char* take_value(struct parser* parser, enum stream_toml_kind kind) {
  const int in_rule = parser->draft.line != 0;
  unsigned* seen = in_rule ? &parser->draft.keys : &parser->profile_keys;
  size_t i = 0;
  while (i < kKeyCount && strcmp(kKeys[i].name, parser->toml.key) != 0) ++i;
  if (i == kKeyCount || !(in_rule ? kKeys[i].in_rule : kKeys[i].in_profile)) {
    return in_rule ? "a rule has no such key" : "a profile has no such key";
  }
  if (kKeys[i].kind != kind) {
    return kind == STREAM_TOML_BOOL ? "a string is expected" : "true or false is expected";
  }
  if (parser->toml.element > 0 && !kKeys[i].in_array) return "one string only";
  if (parser->toml.element == 0 && (*seen & 1u << i) != 0) return "said twice";
  *seen |= 1u << i;
  return kKeys[i].take(parser);
}

static void add_rule(struct parser* parser, const char* name) {
  struct stream_rules* set = parser->set;
  struct draft* draft = &parser->draft;
  if (set->rule_count == STREAM_RULES_MAX) {
    say(parser, draft->line, draft->column, "more than 512 rules in all profiles");
    return;
  }
  struct stream_rule* rule = &set->rules[set->rule_count++];
  *rule = draft->rule;
  rule->name = name;
  ++parser->profile->count;
}

static const char* what_is_missing(const struct draft* draft) {
  if (draft->rule.vstream == NULL) return "this rule names no vstream";
  const int named = draft->name_count != 0 || draft->rule.directory != NULL;
  if (draft->rule.nameless && named) return "a nameless file has neither name nor directory";
  if (!draft->rule.nameless && !named) return "this rule needs a name, a directory or nameless";
  return NULL;
}

static void finish_rule(struct parser* parser) {
  struct draft* draft = &parser->draft;
  if (draft->line == 0 || draft->broken) return;
  const char* missing = what_is_missing(draft);
  if (missing != NULL) {
    say(parser, draft->line, draft->column, missing);
    return;
  }
  if (draft->name_count == 0) add_rule(parser, NULL);
  for (size_t i = 0; i < draft->name_count; ++i) add_rule(parser, draft->names[i]);
}

static void begin_rule(struct parser* parser) {
  finish_rule(parser);
  memset(&parser->draft, 0, sizeof(parser->draft));
  parser->draft.line = parser->toml.line;
  parser->draft.column = parser->toml.column;
  parser->draft.rule.profile = parser->profile->name;
  parser->draft.rule.everywhere = (uint8_t)parser->everywhere;
}

static void read_all(struct parser* parser) {
  for (;;) {
    const enum stream_toml_kind kind = stream_toml_next(&parser->toml);
    if (kind == STREAM_TOML_END) break;
    const char* error = NULL;
    if (kind == STREAM_TOML_TABLE || kind == STREAM_TOML_BAD_TABLE) begin_rule(parser);
    if (kind == STREAM_TOML_ERROR || kind == STREAM_TOML_BAD_TABLE) {
      error = parser->toml.text;
    } else if (kind == STREAM_TOML_TABLE) {
      if (strcmp(parser->toml.text, "rule") != 0) error = "there are tables [[rule]] only";
    } else {
      error = take_value(parser, kind);
    }
    if (error != NULL) wrong(parser, error);
  }
  finish_rule(parser);
}

void stream_profile_parse(struct stream_rules* set, const char* name, char* text, const char* file,
                          stream_rules_report report, void* context) {
  struct parser parser;
  memset(&parser, 0, sizeof(parser));
  parser.set = set;
  parser.file = file;
  parser.report = report;
  parser.context = context;
  parser.everywhere = 1;
  if (set->profile_count == STREAM_PROFILES_MAX) {
    say(&parser, 0, 0, "too many profiles");
    return;
  }
  parser.profile = &set->profiles[set->profile_count++];
  *parser.profile = (struct stream_profile){name, NULL, &set->rules[set->rule_count], 0};
  stream_toml_begin(&parser.toml, text);
  read_all(&parser);
}
