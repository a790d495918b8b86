/* stream-run: runs a command with hints. See usage() below. */
#include "libstream/stream_run.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libstream/include/libstream.h"
#include "libstream/rules.h"

static struct stream_rules rules;

static const char kPreloadName[] = "libstream_preload.so";

struct options {
  const char* profile;
  const char* vstream;
  const char* tmp;
  int explain;
};

static void usage(FILE* out) {
  fputs(
      "usage: stream-run [OPTION]... [--] COMMAND [ARGUMENT]...\n"
      "Runs COMMAND and labels its files on a streamfs mount with their expected lifetimes.\n"
      "\n"
      "  --profile NAME   know the file names of this profile only: one built in, one in\n"
      "                   profiles.d, or the path of a file (default: STREAMFS_PROFILE)\n"
      "  --vstream NAME   label every file opened for writing NAME (default: STREAMFS_VSTREAM)\n"
      "  --tmp MOUNT      put temporary files on MOUNT (sets TMPDIR, SQLITE_TMPDIR)\n"
      "  --explain        print at exit, on standard error, which files were labelled, by which\n"
      "                   rule, and whether the mount honoured it\n"
      "  --help, --version\n"
      "\n"
      "A hint of the program's own always wins. Static programs, and programs that run with\n"
      "another user's rights, are not reached: the filesystem knows their files by name only.\n"
      "Exit status: COMMAND's; 64 usage, 66 a path that is not there, 126 COMMAND cannot be run,\n"
      "127 COMMAND not found.\n",
      out);
}

static int fail_usage(void) {
  fputs("Try 'stream-run --help'.\n", stderr);
  return kExitUsage;
}

static void report_profile(void* context, const char* file, unsigned line, unsigned column,
                           const char* what) {
  (void)context;
  if (line == 0) {
    fprintf(stderr, "stream-run: %s: %s\n", file, what);
  } else {
    fprintf(stderr, "stream-run: %s:%u:%u: %s\n", file, line, column, what);
  }
}

/* Checks a profile that the command's preload library will load too, as that reports no mistake. */
static int check_profile(const char* name) {
  char whole[PATH_MAX]; /* the command may go to another folder */
  if (name != NULL && strchr(name, '/') != NULL && realpath(name, whole) != NULL) name = whole;
  if (name != NULL && setenv("STREAMFS_PROFILE", name, 1) != 0) return kExitIo;
  const char* asked = stream_rules_load_all(&rules, report_profile, NULL);
  if (stream_rules_choose(&rules, asked) == 0) return 0;
  if (strchr(asked, '/') != NULL) return kExitNoPath;
  fprintf(stderr, "stream-run: no profile is called '%s'; there are: default", asked);
  for (size_t i = 0; i < rules.profile_count; ++i) fprintf(stderr, " %s", rules.profiles[i].name);
  fputc('\n', stderr);
  return kExitUsage;
}

static int check_vstream(const char* name) {
  struct stream_vstream stream;
  if (stream_open(&stream, name) == 0) return 0;
  fprintf(stderr,
          "stream-run: '%s' cannot name a vStream: 1 to %d bytes, no '/', not only digits\n", name,
          STREAM_NAME_MAX);
  return kExitUsage;
}

static int check_tmp(const char* path) {
  struct stat status;
  struct stream_info info;
  if (stat(path, &status) != 0 || access(path, W_OK | X_OK) != 0) {
    fprintf(stderr, "stream-run: --tmp %s: %s\n", path, strerror(errno));
    return kExitNoPath;
  }
  if (!S_ISDIR(status.st_mode)) {
    fprintf(stderr, "stream-run: --tmp %s: %s\n", path, strerror(ENOTDIR));
    return kExitNoPath;
  }
  if (stream_query_path(path, &info) == STREAM_NOT_STREAMFS) {
    fprintf(stderr, "stream-run: warning: --tmp %s is not on a streamfs mount\n", path);
  }
  return 0;
}

/* 0 and the place of the command in argv, or an exit status, or -1 for "done, successfully". */
static int parse(int argc, char** argv, struct options* out) {
  enum { kProfile = 1, kVStream, kTmp, kExplain, kHelp, kVersion };
  static const struct option kOptions[] = {{"profile", required_argument, NULL, kProfile},
                                           {"vstream", required_argument, NULL, kVStream},
                                           {"tmp", required_argument, NULL, kTmp},
                                           {"explain", no_argument, NULL, kExplain},
                                           {"help", no_argument, NULL, kHelp},
                                           {"version", no_argument, NULL, kVersion},
                                           {NULL, 0, NULL, 0}};
  for (int option; (option = getopt_long(argc, argv, "+", kOptions, NULL)) != -1;) {
    switch (option) {
      case kProfile:
        out->profile = optarg;
        break;
      case kVStream:
        out->vstream = optarg;
        break;
      case kTmp:
        out->tmp = optarg;
        break;
      case kExplain:
        out->explain = 1;
        break;
      case kHelp:
        usage(stdout);
        return -1;
      case kVersion:
        puts("stream-run " STREAM_VERSION);
        return -1;
      default:
        return fail_usage();
    }
  }
  if (optind < argc) return 0;
  fputs("stream-run: no command given\n", stderr);
  return fail_usage();
}

/* A variable from the environment is as good as an option, and checked alike. */
static int check(struct options* options) {
  if (options->vstream == NULL) options->vstream = getenv("STREAMFS_VSTREAM");
  int status = check_profile(options->profile);
  if (status == 0 && options->vstream != NULL) status = check_vstream(options->vstream);
  if (status == 0 && options->tmp != NULL) status = check_tmp(options->tmp);
  return status;
}

static int is_there(const char* folder, const char* below, char out[PATH_MAX]) {
  const int length = snprintf(out, PATH_MAX, "%s%s/%s", folder, below, kPreloadName);
  return length > 0 && length < PATH_MAX && access(out, R_OK) == 0;
}

/* Beside this program, in the build tree, where it was to be installed. */
static int find_preload(char out[PATH_MAX]) {
  char folder[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
  if (length > 0) {
    folder[length] = '\0';
    *strrchr(folder, '/') = '\0';
    if (is_there(folder, "", out) || is_there(folder, "/../lib", out)) return 0;
  }
  if (is_there(STREAM_LIBDIR, "", out)) return 0;
  fprintf(stderr, "stream-run: %s is neither beside this program nor in %s\n", kPreloadName,
          STREAM_LIBDIR);
  return kExitNoPath;
}

/* Adds to a list with ':' between its parts, behind what is there, unless `known` is in it. */
static int append_variable(const char* name, const char* known, const char* part) {
  const char* before = getenv(name);
  if (before == NULL || *before == '\0') return setenv(name, part, 1);
  if (strstr(before, known) != NULL) return 0;
  const size_t size = strlen(before) + 1 + strlen(part) + 1;
  char* both = malloc(size);
  if (both == NULL) return kExitIo;
  snprintf(both, size, "%s:%s", before, part);
  const int status = setenv(name, both, 1);
  free(both);
  return status;
}

/* Behind other libraries: some insist on being first. A program built with the address sanitizer
 * has it linked and would refuse to start behind any preloaded library, though the two get along.
 */
static int add_preload(const char* library) {
  if (strpbrk(library, " :") != NULL) {
    fprintf(stderr, "stream-run: LD_PRELOAD cannot hold the path '%s'\n", library);
    return kExitNoPath;
  }
  const int status = append_variable("LD_PRELOAD", library, library);
  if (status != 0) return status;
  return append_variable("ASAN_OPTIONS", "verify_asan_link_order", "verify_asan_link_order=0");
}

static int set_environment(const struct options* options) {
  char library[PATH_MAX];
  int status = find_preload(library);
  if (status == 0) status = add_preload(library);
  if (status == 0 && options->vstream != NULL)
    status = setenv("STREAMFS_VSTREAM", options->vstream, 1);
  if (status == 0 && options->tmp != NULL) {
    status = setenv("TMPDIR", options->tmp, 1) | setenv("SQLITE_TMPDIR", options->tmp, 1);
  }
  return status < 0 ? kExitIo : status;
}

int main(int argc, char** argv) {
  struct options options = {NULL, NULL, NULL, 0};
  int status = parse(argc, argv, &options);
  if (status < 0) return 0;
  if (status == 0) status = check(&options);
  if (status == 0) status = set_environment(&options);
  if (status != 0) return status;
  return options.explain ? run_and_explain(argv + optind) : run_only(argv + optind);
}
