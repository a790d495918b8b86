/* Files made of others: which label says what becomes of which. */
#include <string.h>

#include "libstream/rules.h"

/* The first chosen rule that says what becomes of a vStream; NULL. */
static const struct stream_rule* rule_below(const struct stream_rules* set, const char* from) {
  for (size_t i = 0; i < set->chosen_count; ++i) {
    if (stream_same_name(set->chosen[i].rule->merges, from)) return set->chosen[i].rule;
  }
  return NULL;
}

/* The one that says of what a vStream is made; NULL. */
static const struct stream_rule* rule_above(const struct stream_rules* set, const char* into) {
  for (size_t i = 0; i < set->chosen_count; ++i) {
    const struct stream_rule* rule = set->chosen[i].rule;
    if (rule->merges != NULL && stream_same_name(rule->vstream, into)) return rule;
  }
  return NULL;
}

/* Whether merging `from` often enough leads to `to`. A circle of rules ends after all were tried.
 */
static int is_below(const struct stream_rules* set, const char* from, const char* to) {
  const struct stream_rule* next = rule_below(set, from);
  for (size_t i = 0; next != NULL && i < set->chosen_count; ++i) {
    if (stream_same_name(next->vstream, to)) return 1;
    next = rule_below(set, next->vstream);
  }
  return 0;
}

const char* stream_rules_merge(const struct stream_rules* set, const char* merges,
                               const char* input, int begins) {
  const struct stream_rule* below = rule_below(set, input);
  const struct stream_rule* above = rule_above(set, input);
  if (below == NULL && above == NULL) return begins ? NULL : merges;
  const struct stream_rule* upper = below != NULL ? below : above;
  if (begins || merges == NULL) return upper->merges;
  const struct stream_rule* now = rule_below(set, merges);
  if (now != NULL && stream_same_name(now->vstream, input)) return merges;
  return above != NULL && is_below(set, merges, input) ? above->merges : upper->merges;
}
