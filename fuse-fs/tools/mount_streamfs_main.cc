// mount.streamfs and mount.fuse.streamfs, which mount(8) runs for `mount -t streamfs` and
// `-t fuse.streamfs`: SRC MNT [-sfnv] [-o OPTIONS]. Starts the streamfs program in the same
// directory. Exit codes of mount(8): 0 done, 1 wrong use, 32 the mount failed.
#include <fmt/format.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "base/exit_codes.h"
#include "base/result.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/failure.h"
#include "fuse-fs/tools/mount_options.h"
#include "fuse-fs/tools/remount.h"

namespace {

using namespace streamfs::tools;  // NOLINT(google-build-using-namespace): a program's own file

constexpr const char* kProgram = "mount.streamfs";
constexpr int kWrongUse = 1;
constexpr int kFailed = 32;

struct Wanted {
  std::vector<std::string> options;  // for streamfs
  bool remount = false;
};

Wanted sort_out(const std::vector<std::string>& lists) {
  Wanted wanted;
  for (const std::string& list : lists) {
    for (const std::string& option : split_options(list)) {
      if (option == "remount") wanted.remount = true;
      if (option != "remount" && !is_for_others(option)) wanted.options.push_back(option);
    }
  }
  return wanted;
}

std::string escaped_list(const std::vector<std::string>& options) {
  std::string joined;
  for (const std::string& option : options) {
    if (!joined.empty()) joined.push_back(',');
    for (const char c : option) {
      if (c == ',' || c == '\\') joined.push_back('\\');
      joined.push_back(c);
    }
  }
  return joined;
}

int start(const std::string& source, const std::string& mountpoint, const std::string& options) {
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string beside = (self.parent_path() / "streamfs").string();
  const std::string program = access(beside.c_str(), X_OK) == 0 ? beside : "streamfs";
  std::vector<std::string> words = {program, source, mountpoint};
  if (!options.empty()) words.insert(words.end(), {"-o", options});
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (const int error =
          posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ)) {
    return fail(kProgram, Failure{kFailed, streamfs::Error(error, program).message()});
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) return kFailed;
  if (WEXITSTATUS(status) == streamfs::exit_code::kUsage) return kWrongUse;
  return WEXITSTATUS(status) == 0 ? 0 : kFailed;
}

int run(int argc, char** argv) {
  CLI::App app("Mounts a streamfs for mount(8).", kProgram);
  std::string source;
  std::string mountpoint;
  std::vector<std::string> lists;
  bool fake = false;
  bool ignored = false;
  std::vector<std::string> ignored_value;
  prepare(app);
  app.footer("Exit codes, as mount(8) wants them: 0 done, 1 wrong use, 32 the mount failed.");
  app.add_option("SOURCE", source, "The data device")->required();
  app.add_option("MOUNTPOINT", mountpoint, "The mountpoint, a directory")->required();
  app.add_option("-o", lists, "Set mount options: those of streamfs(8) and of fstab(5)")
      ->allow_extra_args(false);
  app.add_flag("-f", fake, "Do everything except mount");
  app.add_flag("-s,-n,-v", ignored, "Accept and ignore, for mount(8)");
  app.add_option("-t,-N", ignored_value,
                 "Accept and ignore the type and the namespace, for mount(8)");
  if (const auto code = parse(app, argc, argv)) return *code == 0 ? 0 : kWrongUse;
  const Wanted wanted = sort_out(lists);
  if (wanted.remount) {
    const auto done = fake ? streamfs::Result<void>() : remount(mountpoint, wanted.options);
    return done ? 0 : fail(kProgram, Failure{kFailed, done.error().message()});
  }
  for (const std::string& option : wanted.options) {
    MountCommand checked;
    if (const auto known = apply_option(checked, option); !known) {
      fail(kProgram, Failure{kWrongUse, known.error().context});
      return kWrongUse;
    }
  }
  return fake ? 0 : start(source, mountpoint, escaped_list(wanted.options));
}

}  // namespace

int main(int argc, char** argv) {
  return guarded(kProgram, [=] { return run(argc, argv); });
}
