#include "fuse-fs/tools/streamctl_daemon.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.h"

namespace streamfs::tools {
namespace {

constexpr const char* kClassifierd = "classifierd";

}  // namespace

Result<void> become_daemon_command(int argc, char** argv) {
  if (argc < 2 ||
      std::ranges::none_of(
          kDaemonCommands,
          [&](const DaemonCommand& each) { return std::string_view(argv[1]) == each.name; }))
    return {};
  std::vector<char*> arguments(argv, std::next(argv, argc + 1));  // the null as well
  // The usage line and errors name the program that the user called.
  setenv("CLASSIFIERD_PROGRAM", "streamctl", 1);  // NOLINT(concurrency-mt-unsafe): one thread yet
  std::string name = kClassifierd;
  arguments[0] = name.data();
  // Looks beside this program, then where a build of the sources has it, then in PATH.
  std::error_code unknown;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path();
  for (const auto& folder : {here, here / "../../venv/bin"})
    execv((folder / kClassifierd).c_str(), arguments.data());
  execvp(kClassifierd, arguments.data());
  return Error{errno, std::string(argv[1]) + " needs classifierd, the learning daemon's program"};
}

}  // namespace streamfs::tools
