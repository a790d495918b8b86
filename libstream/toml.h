/* A strict reader of the part of TOML 1.0 that profiles use: comments, bare keys, "basic" and
 * 'literal' strings, booleans, arrays of strings, and [[arrays of tables]]. Other TOML and
 * malformed text are errors; reading continues at the next line that begins with a key or a table.
 * Bytes above 0x7f are not checked to be UTF-8, because file names need not be.
 *
 * No allocation: strings point into the text, which is overwritten. Thread safety: one thread at a
 * time for a reader. */
#ifndef STREAMFS_LIBSTREAM_TOML_H
#define STREAMFS_LIBSTREAM_TOML_H

#ifdef __cplusplus
extern "C" {
#endif

enum stream_toml_kind {
  STREAM_TOML_END,
  STREAM_TOML_TABLE,    /* [[text]] */
  STREAM_TOML_STRING,   /* key = text, or an element of key = [text, ...]; [] gives no item */
  STREAM_TOML_BOOL,     /* key = value */
  STREAM_TOML_ERROR,    /* text describes the error */
  STREAM_TOML_BAD_TABLE /* the same, in a [[table]] line: the keys that follow have no table */
};

struct stream_toml {
  /* The item that stream_toml_next() found, and its place in the text. */
  const char* key;
  const char* text;
  int value;             /* of STREAM_TOML_BOOL */
  int element;           /* 0, then 1, 2, ... in an array */
  unsigned line, column; /* from 1 */
  /* Private to the reader. */
  char* at;
  char* line_start;
  unsigned at_line;
  int in_array;
};

/* Begins to read `text`, which ends in a NUL. Requires: `text` lives as long as the strings. */
void stream_toml_begin(struct stream_toml* reader, char* text);
/* Reads the next item. Its strings stay valid while the text does. */
enum stream_toml_kind stream_toml_next(struct stream_toml* reader);

#ifdef __cplusplus
}
#endif

#endif
