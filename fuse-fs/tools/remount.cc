#include "fuse-fs/tools/remount.h"

#include <sys/mount.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/result.h"

namespace streamfs::tools {
namespace {

struct Flag {
  const char *on, *off;
  unsigned long value;
};
constexpr Flag kFlags[] = {{"ro", "rw", MS_RDONLY},
                           {"nosuid", "suid", MS_NOSUID},
                           {"nodev", "dev", MS_NODEV},
                           {"noexec", "exec", MS_NOEXEC},
                           {"noatime", "atime", MS_NOATIME}};

}  // namespace

Result<void> remount(const std::string& mountpoint, const std::vector<std::string>& options) {
  unsigned long flags = MS_REMOUNT;
  for (const std::string& option : options) {
    for (const Flag& flag : kFlags) {
      if (option == flag.on) flags |= flag.value;
      if (option == flag.off) flags &= ~flag.value;
    }
  }
  if (mount("none", mountpoint.c_str(), nullptr, flags, nullptr) == 0) return {};
  return Error(errno, "remounting " + mountpoint);
}

}  // namespace streamfs::tools
