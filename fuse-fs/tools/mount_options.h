// The -o options of streamfs and of fstab.
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/frontend/transport.h"

namespace streamfs::tools {

struct MountCommand {
  std::string data, mountpoint, meta;
  data::MountOptions filesystem;
  std::vector<std::string> generic;  // for the kernel and libfuse: "ro", "nodev", …
  bool allow_other = false;
  frontend::Transport transport = frontend::Transport::kAuto;
  bool enable_uring = false;
  bool direct_io = false;
  uint32_t request_timeout_s = 300;  // 0: none
  bool nonempty = false;             // mount over content or another mount
  bool foreground = false;
  bool debug = false;
};

// Splits at commas and drops empty parts. A backslash keeps the next character.
std::vector<std::string> split_options(std::string_view text);
// Applies one option to `command`, and ignores it if is_for_others(). Errors: EINVAL, with a
// sentence that names the option.
Result<void> apply_option(MountCommand& command, const std::string& option);
// Returns whether only fstab, mount(8) and systemd use this option: nofail, _netdev, x-*, …
bool is_for_others(std::string_view option);

}  // namespace streamfs::tools
