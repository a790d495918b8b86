/* The part of TOML 1.0 that profiles are written in, read in place and strictly: comments, bare
 * keys, "basic" and 'literal' strings, booleans, arrays of strings, [[tables]] of an array. The
 * rest of TOML is an error that says so, and so is what is no TOML; reading goes on with the next
 * line that begins with a key or a table. Not checked: that bytes above 0x7f are UTF-8, since names
 * of files need not be.
 *
 * No allocation: strings point into the text, which is overwritten. One reader, one thread. */
#ifndef STREAMFS_LIBSTREAM_TOML_H
#define STREAMFS_LIBSTREAM_TOML_H

#ifdef __cplusplus
extern "C" {
#endif

enum stream_toml_kind {
  STREAM_TOML_END,
  STREAM_TOML_TABLE,    /* [[text]] */
  STREAM_TOML_STRING,   /* key = text, or one element of key = [text, ...] */
  STREAM_TOML_BOOL,     /* key = value */
  STREAM_TOML_ERROR,    /* text says what is wrong */
  STREAM_TOML_BAD_TABLE /* so, in a table's head: what follows belongs to no table */
};

struct stream_toml {
  /* What stream_toml_next() found, and where. */
  const char* key;
  const char* text;
  int value;
  int element; /* 0, then 1, 2, ... in an array */
  unsigned line, column;
  /* The reader's own. */
  char* at;
  char* line_start;
  unsigned at_line;
  int in_array;
};

/* `text` ends in a NUL and holds no other. */
void stream_toml_begin(struct stream_toml* reader, char* text);
enum stream_toml_kind stream_toml_next(struct stream_toml* reader);

#ifdef __cplusplus
}
#endif

#endif
