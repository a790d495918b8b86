// streamfs DATA MOUNTPOINT -o meta=META[,OPTION…]: mounts, and serves the mount until it is gone.
#include <stdlib.h>
#include <unistd.h>

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
  meta=PATH            use this metadata device: devdax, a file on a DAX filesystem, or any file
  mirror=PATH          use this second copy of META (mkfs.streamfs --mirror)
  degraded             mount one copy of a META that is kept twice
  placement=MODE       place data by off, learned, hints, auto (default) or passthrough
  model=PATH           begin with the placement model that classifierd stored in PATH, a file or its
                       --state folder (default: /var/lib/classifierd; of a user's mount,
                       ~/.local/state/classifierd); none: begin without
  profile=NAME         know the file names of this profile only (default: all that hold everywhere)
  profiles=FOLDER      read profiles from FOLDER (/etc/streamfs/profiles.d); none: built-in ones only
  ro, rw               mount read-only, or read-write (default)
  dirsync              make changes of names durable before the call returns
  discard, nodiscard   trim freed space (default), or do not
  plp                  trust the SSD's power-loss protection although it reports a volatile cache:
                       writes keep to their streams however often programs call fsync
  verify, noverify     compare data with checksums at each read (default), or do not
  trace=FILE           record a trace of every write from the start
  direct_io            bypass the page cache
  idle_work=WHEN       let the SSD collect garbage while programs send no requests: auto (not on
                       battery; default), always, off
  real_time[=FACTOR]   let an emulated SSD answer no sooner than its flash would, times FACTOR
  transport=WAY        take requests from the kernel by io_uring (the mount fails if it is not
                       available), dev (/dev/fuse), or auto: io_uring if it is available, else
                       /dev/fuse (default auto)
  io_uring             work as transport=auto, with a warning if io_uring is not available
  noio_uring           work as transport=dev
  enable_uring         switch FUSE over io_uring on in the kernel first, for all FUSE servers and
                       until the next boot (root only)
  request_timeout=S    end the mount when a request waits S seconds for a device that never
                       answers; programs then get errors (default 300; 0: never)
  epoch_idle_ms=N, epoch_age_ms=N
                       make data durable N ms after the last write, or after the first one
                       (default 1000, 5000)
  write_behind_mib=N   keep up to N MiB of new data in memory until it must be durable; data that
                       is deleted first is never written (default 32)
  meta_growth=WHEN     let a META file grow when it is 90 % full: auto (default), off
  meta_size_max=SIZE   let META grow to at most SIZE by itself (default: as mkfs planned)
  intent_log_max=SIZE  let one fsync put up to SIZE of data into META's intent log, at most 504K
                       and a quarter of the log; a larger fsync flushes the device (default 256K)
  cache_mib=N          keep up to N MiB of unused inodes, extents and names (default 256)
  nonempty             mount although the directory has content, or is a mountpoint already
  allow_other          let other users in (always on for root; others need user_allow_other)
  remount              change ro, rw, suid, dev, noexec or noatime of a mount
  suid, dev, noexec, sync, noatime, …
                       work as in fstab(5)
)";

// Returns the folder that systemd gives classifierd, or its user's one.
std::string state_folder_of_classifierd() {
  if (geteuid() == 0) return "/var/lib/classifierd";
  const char* const state = secure_getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/classifierd";
  const char* const home = secure_getenv("HOME");
  return home == nullptr || *home != '/' ? "" : std::string(home) + "/.local/state/classifierd";
}

// Returns the folder in which a mount looks for a model unasked. Empty: there is none, or $HOME is
// another user's.
std::string default_model_folder() {
  std::string folder = state_folder_of_classifierd();
  return ::access(folder.c_str(), X_OK) == 0 ? folder : "";
}

Result<MountCommand> read_command(const std::string& data, const std::string& mountpoint,
                                  const std::vector<std::string>& options) {
  MountCommand command;
  command.filesystem.meta_growth = true;
  command.filesystem.profiles_folder = placement::kProfilesFolder;
  command.filesystem.model_path = default_model_folder();
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
                     "Mount nothing: print each mistake in a file of /etc/streamfs, with its line");
  check->option_text("FILE");
  auto* device =
      app.add_option("DATA", data,
                     "The data device: a block device, a file, an NVMe /dev/ngXnY, or emu:PATH")
          ->excludes(check);
  auto* point =
      app.add_option("MOUNTPOINT", mountpoint, "The mountpoint, a directory")->excludes(check);
  app.add_option("-o", option_lists, "Set mount options")->allow_extra_args(false);
  app.add_flag("-f", foreground, "Stay in the foreground and log to standard error");
  app.add_flag("-d", debug, "Do as -f, and print every request");
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
