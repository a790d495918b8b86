/* Build time only: profiles as C, for rules.c to find them as constants.
 * usage: compile_profiles FILE.toml... > built_in_profiles.c
 * A profile with an error stops the build. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libstream/profile.h"

static struct stream_rules set;

static void report(void* context, const char* file, unsigned line, unsigned column,
                   const char* what) {
  fprintf(stderr, "%s:%u:%u: %s\n", file, line, column, what);
  ++*(int*)context;
}

static void print_string(const char* text) {
  if (text == NULL) {
    fputs("0, ", stdout);
    return;
  }
  putchar('"');
  for (; *text != '\0'; ++text) {
    const unsigned char byte = (unsigned char)*text;
    const int plain = byte >= 0x20 && byte < 0x7f && strchr("\"\\?", byte) == NULL;
    printf(plain ? "%c" : "\\%03o", byte);
  }
  fputs("\", ", stdout);
}

static void print_rule(const struct stream_rule* rule) {
  fputs("    {", stdout);
  print_string(rule->profile);
  print_string(rule->name);
  print_string(rule->directory);
  print_string(rule->thread);
  print_string(rule->merges);
  print_string(rule->vstream);
  printf("%u, %u, %u},\n", rule->rw_hint, rule->nameless, rule->everywhere);
}

static void print_profile(const struct stream_profile* profile) {
  fputs("    {", stdout);
  print_string(profile->name);
  print_string(profile->about);
  printf("kRules + %td, %zu},\n", profile->rules - set.rules, profile->count);
}

int main(int argc, char** argv) {
  int errors = 0;
  for (int i = 1; i < argc; ++i) {
    const int code = stream_rules_load_file(&set, argv[i], report, &errors);
    if (code != 0) fprintf(stderr, "%s: %s\n", argv[i], strerror(-code));
    errors += code != 0;
  }
  if (errors != 0) return 1;
  puts("#include \"libstream/profile.h\"\n\nstatic const struct stream_rule kRules[] = {");
  for (size_t i = 0; i < set.rule_count; ++i) print_rule(&set.rules[i]);
  puts("};\n\nconst struct stream_profile stream_built_in_profiles[] = {");
  for (size_t i = 0; i < set.profile_count; ++i) print_profile(&set.profiles[i]);
  printf("};\nconst size_t stream_built_in_count = %zu;\n", set.profile_count);
  return fflush(stdout) != 0;
}
