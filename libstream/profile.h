/* Parses profiles into rules. Thread safety: one thread at a time for a set. */
#ifndef STREAMFS_LIBSTREAM_PROFILE_H
#define STREAMFS_LIBSTREAM_PROFILE_H

#include <limits.h>

#include "libstream/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the profile in `text` to the set. Parses `text` in place, so that it is overwritten.
 * Requires: `text` and `name` live as long as the set. Each error is reported under the name
 * `file`, and its rule is left out. `report` may be NULL. */
void stream_profile_parse(struct stream_rules* set, const char* name, char* text, const char* file,
                          stream_rules_report report, void* context);

/* Returns 0 for a valid vStream name: 1 to 31 bytes, no '/', no control character, not only digits.
 * Otherwise -EINVAL, or -ENAMETOOLONG. */
int stream_name_check(const char* name);

/* Writes FOLDER/NAME to `out`. Returns 0 or -ENAMETOOLONG. */
int stream_join_path(char out[PATH_MAX], const char* folder, const char* name);

/* Returns a phrase for an error of stream_rules_load_file(). */
const char* stream_words_for_load(int code);

/* compile_profiles.c generates these from profiles/. */
/* NOLINTNEXTLINE(readability-identifier-naming) */
extern const struct stream_profile stream_built_in_profiles[];
extern const size_t stream_built_in_count; /* NOLINT(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif
