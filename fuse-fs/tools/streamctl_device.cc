#include "fuse-fs/tools/streamctl_device.h"

#include <sys/stat.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "fuse-fs/blockdev/describe.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/launch.h"
#include "fuse-fs/tools/output.h"
#include "fuse-fs/tools/streamctl_print.h"

namespace streamfs::tools {
namespace {

constexpr double kWaitSeconds = 1;

}  // namespace

bool names_data(const std::string& word) {
  if (blockdev::path_of(word) != word) return true;
  struct stat st{};
  return stat(word.c_str(), &st) == 0 && (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode));
}

Result<void> describe_data(const DeviceArguments& arguments) {
  log_to_stderr(Talk::kWarnings);
  blockdev::OpenOptions options;
  options.wait_seconds = kWaitSeconds;
  options.read_only = !arguments.probe;
  SFS_ASSIGN(const std::unique_ptr<blockdev::Device> device,
             blockdev::open_device(absolute_data(arguments.data), options));
  if (arguments.probe) SFS_TRY(blockdev::probe_placement(*device));
  const nlohmann::json described = blockdev::describe(*device);
  if (arguments.style.json) {
    print_json(described);
  } else {
    print_described(described, arguments.style);
  }
  return {};
}

Result<void> list_devices(const Style& style) {
  log_to_stderr(Talk::kWarnings);
  SFS_ASSIGN(const nlohmann::json listed, blockdev::list_nvme());
  if (style.json) {
    print_json({{"subsystems", listed}});
  } else {
    print_nvme_list(listed, style);
  }
  return {};
}

}  // namespace streamfs::tools
