#include "libstream/toml.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static unsigned column_of(const struct stream_toml* reader, const char* at) {
  return (unsigned)(at - reader->line_start) + 1;
}

static void mark(struct stream_toml* reader, const char* at) {
  reader->line = reader->at_line;
  reader->column = column_of(reader, at);
}

static int is_bare(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '_' || byte == '-';
}

static void next_line(struct stream_toml* reader) {
  while (*reader->at != '\0' && *reader->at != '\n') ++reader->at;
  if (*reader->at == '\0') return;
  reader->line_start = ++reader->at;
  ++reader->at_line;
}

static void skip_blanks(struct stream_toml* reader) {
  while (*reader->at == ' ' || *reader->at == '\t') ++reader->at;
}

/* Blanks, ends of lines and comments. */
static void skip_lines(struct stream_toml* reader) {
  for (;;) {
    skip_blanks(reader);
    if (*reader->at == '\r' && reader->at[1] == '\n') ++reader->at;
    if (*reader->at != '\n' && *reader->at != '#') return;
    next_line(reader);
  }
}

/* Says what is wrong at `at`, and goes to the next line that may begin something. */
static enum stream_toml_kind fail(struct stream_toml* reader, const char* at, const char* what) {
  mark(reader, at);
  reader->text = what;
  reader->in_array = 0;
  do {
    next_line(reader);
  } while (*reader->at != '\0' && !is_bare(*reader->at) && *reader->at != '[');
  return STREAM_TOML_ERROR;
}

/* Nothing but a comment may follow on the line. */
static int line_ends(struct stream_toml* reader) {
  skip_blanks(reader);
  const char* at = reader->at;
  return *at == '\0' || *at == '\n' || *at == '#' || (*at == '\r' && at[1] == '\n');
}

static int hex_of(char byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

/* A scalar value as UTF-8, which is never longer than the escape it came from. */
static char* put_utf8(char* out, uint32_t code) {
  static const uint32_t kFirst[] = {0x80, 0x800, 0x10000};
  static const unsigned char kLead[] = {0, 0xc0, 0xe0, 0xf0};
  int more = 0;
  while (more < 3 && code >= kFirst[more]) ++more;
  *out++ = (char)(kLead[more] | code >> (6 * more));
  while (more-- > 0) *out++ = (char)(0x80 | (code >> (6 * more) & 0x3f));
  return out;
}

/* \uXXXX and \UXXXXXXXX; `at` stands behind the letter. NULL: wrong. */
static char* read_code(const char** at, int digits, char* out) {
  uint32_t code = 0;
  for (; digits > 0; --digits, ++*at) {
    const int digit = hex_of(**at);
    if (digit < 0) return NULL;
    code = code << 4 | (uint32_t)digit;
  }
  const int surrogate = code >= 0xd800 && code <= 0xdfff;
  return code == 0 || code > 0x10ffff || surrogate ? NULL : put_utf8(out, code);
}

/* The byte(s) of an escape; `at` stands behind the backslash. NULL: there is none such. */
static char* read_escape(const char** at, char* out) {
  static const char kLetters[] = "btnfr\"\\";
  static const char kBytes[] = "\b\t\n\f\r\"\\";
  const char letter = *(*at)++;
  const char* known = letter == '\0' ? NULL : strchr(kLetters, letter);
  if (known != NULL) {
    *out = kBytes[known - kLetters];
    return out + 1;
  }
  if (letter == 'u') return read_code(at, 4, out);
  return letter == 'U' ? read_code(at, 8, out) : NULL;
}

/* Reads a string in place; NULL, or what is wrong with `reader->at` at the place. */
static const char* read_string(struct stream_toml* reader) {
  const char quote = *reader->at;
  const char* at = reader->at + 1;
  char* out = reader->at + 1;
  if (at[0] == quote && at[1] == quote) return "strings of more than one line are not understood";
  reader->text = out;
  for (; *at != quote; reader->at = (char*)(uintptr_t)at) {
    const unsigned char byte = (unsigned char)*at;
    if (byte == '\0' || byte == '\n' || byte == '\r') return "a string ends on its line";
    if ((byte < 0x20 && byte != '\t') || byte == 0x7f) return "a control character in a string";
    reader->at = (char*)(uintptr_t)at;
    ++at;
    if (byte != '\\' || quote == '\'') {
      *out++ = (char)byte;
    } else if ((out = read_escape(&at, out)) == NULL) {
      return "no such escape in a string";
    }
  }
  reader->at = (char*)(uintptr_t)at + 1;
  *out = '\0';
  return NULL;
}

static enum stream_toml_kind take_string(struct stream_toml* reader) {
  const char* start = reader->at;
  mark(reader, start);
  const unsigned column = reader->column;
  const char* wrong = read_string(reader);
  if (wrong != NULL) return fail(reader, reader->at, wrong);
  reader->column = column;
  return STREAM_TOML_STRING;
}

/* The next element, or what follows the array. */
static enum stream_toml_kind take_element(struct stream_toml* reader) {
  skip_lines(reader);
  if (*reader->at == ']') {
    ++reader->at;
    reader->in_array = 0;
    if (!line_ends(reader)) return fail(reader, reader->at, "nothing may follow the array");
    return stream_toml_next(reader);
  }
  if (*reader->at != '"' && *reader->at != '\'') {
    return fail(reader, reader->at, "an array holds strings only");
  }
  const enum stream_toml_kind kind = take_string(reader);
  if (kind == STREAM_TOML_ERROR) return kind;
  ++reader->element;
  const unsigned line = reader->line, column = reader->column;
  skip_lines(reader);
  if (*reader->at == ',') {
    ++reader->at;
  } else if (*reader->at != ']') {
    return fail(reader, reader->at, "',' or ']' is missing");
  }
  reader->line = line;
  reader->column = column;
  return kind;
}

static enum stream_toml_kind fail_table(struct stream_toml* reader, const char* at,
                                        const char* what) {
  fail(reader, at, what);
  return STREAM_TOML_BAD_TABLE;
}

static enum stream_toml_kind take_table(struct stream_toml* reader) {
  char* start = reader->at;
  if (start[1] != '[') return fail_table(reader, start, "a plain [table] is not understood");
  reader->at += 2;
  skip_blanks(reader);
  char* name = reader->at;
  while (is_bare(*reader->at)) ++reader->at;
  char* end = reader->at;
  skip_blanks(reader);
  if (name == end || reader->at[0] != ']' || reader->at[1] != ']') {
    return fail_table(reader, reader->at, "a table is [[name]]");
  }
  reader->at += 2;
  if (!line_ends(reader))
    return fail_table(reader, reader->at, "nothing may follow the table's name");
  *end = '\0';
  mark(reader, start);
  reader->text = name;
  return STREAM_TOML_TABLE;
}

static int take_word(struct stream_toml* reader, const char* word) {
  const size_t length = strlen(word);
  if (strncmp(reader->at, word, length) != 0 || is_bare(reader->at[length])) return 0;
  reader->at += length;
  return 1;
}

static enum stream_toml_kind take_value(struct stream_toml* reader) {
  const char* start = reader->at;
  if (*start == '[') {
    ++reader->at;
    reader->in_array = 1;
    reader->element = -1;
    return take_element(reader);
  }
  enum stream_toml_kind kind = STREAM_TOML_BOOL;
  mark(reader, start);
  if (*start == '"' || *start == '\'') {
    kind = take_string(reader);
    if (kind == STREAM_TOML_ERROR) return kind;
  } else if (take_word(reader, "true")) {
    reader->value = 1;
  } else if (take_word(reader, "false")) {
    reader->value = 0;
  } else {
    return fail(reader, start, "a value is a string, true, false or an array of strings");
  }
  if (!line_ends(reader)) return fail(reader, reader->at, "nothing may follow the value");
  return kind;
}

static enum stream_toml_kind take_pair(struct stream_toml* reader) {
  char* key = reader->at;
  while (is_bare(*reader->at)) ++reader->at;
  char* end = reader->at;
  skip_blanks(reader);
  if (key == end) return fail(reader, key, "a key or [[table]] is expected");
  if (*reader->at != '=') return fail(reader, reader->at, "'=' is missing behind the key");
  ++reader->at;
  skip_blanks(reader);
  *end = '\0';
  reader->key = key;
  reader->element = 0;
  return take_value(reader);
}

void stream_toml_begin(struct stream_toml* reader, char* text) {
  memset(reader, 0, sizeof(*reader));
  reader->at = reader->line_start = text;
  reader->at_line = 1;
}

enum stream_toml_kind stream_toml_next(struct stream_toml* reader) {
  if (reader->in_array) return take_element(reader);
  skip_lines(reader);
  mark(reader, reader->at);
  if (*reader->at == '\0') return STREAM_TOML_END;
  return *reader->at == '[' ? take_table(reader) : take_pair(reader);
}
