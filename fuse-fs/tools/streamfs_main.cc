// streamfs DATA MOUNTPOINT -o meta=META[,OPTION…]: mounts, and serves the mount until it is gone.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "base/result.h"
#include "fuse-fs/placement/name_rules.h"
#include "fuse-fs/tools/check_config.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/failure.h"
#include "fuse-fs/tools/journal_sink.h"
#include "fuse-fs/tools/launch.h"
#include "fuse-fs/tools/mount_options.h"
#include "fuse-fs/tools/mount_program.h"
#include "fuse-fs/tools/remount.h"

namespace {

using namespace streamfs;         // NOLINT(google-build-using-namespace): a program's own file
using namespace streamfs::tools;  // NOLINT(google-build-using-namespace)

constexpr const char* kOptionsHelp = R"(Options (-o, comma-separated; a backslash keeps a comma):
  meta=PATH            the metadata device: devdax, a file on a DAX filesystem, or any file
  mirror=PATH          where META is a second time (mkfs.streamfs --mirror)
  degraded             go on with one copy of a META that is kept twice
  placement=MODE       off, learned, hints or auto (default)
  profile=NAME         which names of files are known (default: all that hold everywhere)
  profiles=FOLDER      where profiles lie (/etc/streamfs/profiles.d), or none
  ro, rw               read-only or not
  dirsync              namespace changes are durable before they return
  discard, nodiscard   trim freed space (default) or not
  plp                  the SSD is power-loss protected although it says that it has a volatile
                       cache: writes keep to their streams however often programs fsync
  verify, noverify     check data against checksums on read (default) or not
  trace=FILE           record a trace of every write from the start
  direct_io            no page cache
  idle_work=WHEN       when the SSD may collect garbage while programs ask nothing: auto (not on
                       battery; default), always, off
  real_time[=FACTOR]   an emulated SSD answers no sooner than its flash would, times FACTOR
  io_uring             talk to the kernel over io_uring where it can
  request_timeout=S    end the mount when a request waits S seconds for a device that never
                       answers; programs then get errors, and nothing hangs (300; 0: never)
  epoch_idle_ms=N, epoch_age_ms=N
                       when data becomes durable by itself (1000, 5000)
  write_behind_mib=N   memory for new data that is not written if it is deleted first (32)
  meta_growth=WHEN     auto (default): a META file grows when it is 90 % full; off
  meta_size_max=SIZE   the largest size that META grows to by itself (what mkfs planned)
  cache_mib=N          memory for inodes, extents and names that nothing uses now (256)
  nonempty             mount although the directory has content, or is a mountpoint already
  allow_other          other users too (always on for root; others need user_allow_other)
  remount              change ro, rw, suid, dev, noexec or noatime of what is mounted
  suid, dev, noexec, sync, noatime, …
                       as in fstab(5)
)";

Result<MountCommand> read_command(const std::string& data, const std::string& mountpoint,
                                  const std::vector<std::string>& options) {
  MountCommand command;
  command.filesystem.meta_growth = true;
  command.filesystem.profiles_folder = placement::kProfilesFolder;
  for (const std::string& option : options) SFS_TRY(apply_option(command, option));
  if (command.meta.empty()) return Error{EINVAL, "-o meta=PATH is missing"};
  command.data = absolute_data(data);
  command.mountpoint = absolute_path(mountpoint);
  return command;
}

int run(int argc, char** argv) {
  CLI::App app("Mounts a streamfs: metadata on META, file data on DATA.", "streamfs");
  std::string data;
  std::string mountpoint;
  std::vector<std::string> option_lists;
  bool foreground = false;
  bool debug = false;
  std::string config;
  prepare(app);
  app.footer(std::string(kOptionsHelp) + kExitCodesHelp);
  auto* check =
      app.add_option("--check-config", config,
                     "Mount nothing: say what is wrong with a file in /etc/streamfs, with "
                     "its line");
  check->option_text("FILE");
  auto* device =
      app.add_option("DATA", data,
                     "The data device: a block device, a file, an NVMe /dev/ngXnY, or emu:PATH")
          ->excludes(check);
  auto* point = app.add_option("MOUNTPOINT", mountpoint, "A directory")->excludes(check);
  app.add_option("-o", option_lists, "Options")->allow_extra_args(false);
  app.add_flag("-f", foreground, "Stay in the foreground, log to stderr");
  app.add_flag("-d", debug, "As -f, and print every request");
  app.final_callback([&] {
    if (*check) return;
    if (!*device) throw CLI::RequiredError("DATA");
    if (!*point) throw CLI::RequiredError("MOUNTPOINT");
  });
  if (const auto code = parse(app, argc, argv)) return *code;
  if (*check) return check_config(config);
  std::vector<std::string> options;
  for (const std::string& list : option_lists)
    std::ranges::move(split_options(list), std::back_inserter(options));
  if (std::ranges::find(options, "remount") != options.end()) {  // as mount.fuse3 asks for it
    const Result<void> done = remount(mountpoint, options);
    return done ? exit_code::kOk : fail("streamfs", done.error());
  }
  Result<MountCommand> command = read_command(data, mountpoint, options);
  if (!command) return fail("streamfs", Failure{exit_code::kUsage, command.error().context});
  command->debug = debug;
  journal_fields() = {"STREAMFS_MOUNTPOINT=" + command->mountpoint,
                      "STREAMFS_DATA=" + command->data};
  log_to_stderr(debug ? Talk::kEverything : foreground ? Talk::kInformation : Talk::kWarnings);
  Launch launch = foreground || debug ? Launch::foreground() : Launch::background();
  return run_mount(*command, launch);
}

}  // namespace

int main(int argc, char** argv) {
  return guarded("streamfs", [=] { return run(argc, argv); });
}
