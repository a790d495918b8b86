/* Profiles: from text to rules. Any thread, but one at a time for a set. */
#ifndef STREAMFS_LIBSTREAM_PROFILE_H
#define STREAMFS_LIBSTREAM_PROFILE_H

#include <limits.h>

#include "libstream/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the profile that `text` holds, which is overwritten and must live as long as the set, as
 * must `name`. `file` is what errors are reported under. */
void stream_profile_parse(struct stream_rules* set, const char* name, char* text, const char* file,
                          stream_rules_report report, void* context);

/* 0 if this can name a vStream: 1 to 31 bytes, no '/' and no control character, not only digits.
 * Otherwise -EINVAL or -ENAMETOOLONG. */
int stream_name_check(const char* name);

/* FOLDER/NAME; -ENAMETOOLONG. */
int stream_join_path(char out[PATH_MAX], const char* folder, const char* name);

/* What a -errno of stream_rules_load_file() means. */
const char* stream_words_for_load(int code);

/* Generated from profiles/ (compile_profiles.c). */
/* NOLINTNEXTLINE(readability-identifier-naming) */
extern const struct stream_profile stream_built_in_profiles[];
extern const size_t stream_built_in_count; /* NOLINT(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif
