// streamctl: inspects and controls a mounted streamfs.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/exit_codes.h"
#include "base/plain_help.h"
#include "base/result.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/command_set.h"
#include "fuse-fs/tools/control_client.h"
#include "fuse-fs/tools/failure.h"
#include "fuse-fs/tools/output.h"
#include "fuse-fs/tools/streamctl_daemon.h"
#include "fuse-fs/tools/streamctl_device.h"
#include "fuse-fs/tools/streamctl_export.h"
#include "fuse-fs/tools/streamctl_hint.h"
#include "fuse-fs/tools/streamctl_iostat.h"
#include "fuse-fs/tools/streamctl_maintenance.h"
#include "fuse-fs/tools/streamctl_metadata.h"
#include "fuse-fs/tools/streamctl_print.h"
#include "fuse-fs/tools/streamctl_probe.h"
#include "fuse-fs/tools/streamctl_setup.h"
#include "fuse-fs/tools/streamctl_streams.h"
#include "fuse-fs/tools/streamctl_super.h"
#include "fuse-fs/tools/streamctl_top.h"
#include "fuse-fs/tools/streamctl_tune.h"
#include "fuse-fs/tools/streamctl_usage.h"
#include "libstream/include/libstream.h"

namespace {

using namespace streamfs;         // NOLINT(google-build-using-namespace): a program's own file
using namespace streamfs::tools;  // NOLINT(google-build-using-namespace)
using nlohmann::json;

constexpr const char* kProgram = "streamctl";

struct Arguments {
  std::string path, file, meta_size, mode;
  std::string meta, mirror, data;  // of a filesystem that is not mounted
  HintArguments hints;
  Style style;
  bool wait = false;
  bool dry_run = false;
  bool force = false;
  bool degraded = false;
  bool probe = false;
  bool if_stopping = false;
  double seconds = 60;

  MaintenanceArguments maintenance() const { return {path, seconds, if_stopping, style}; }
  MetadataArguments metadata() const { return {meta, data, file, mirror, degraded, force, style}; }
};

Result<json> ask(const Arguments& arguments, const json& request) {
  SFS_ASSIGN(ControlClient client, ControlClient::connect(arguments.path));
  return client.ask(request);
}

// Sends a request, and prints the answer as JSON or as text.
Result<void> show(const Arguments& arguments, const char* op,
                  void (*print)(const json&, const Style&)) {
  SFS_ASSIGN(const json answer, ask(arguments, {{"op", op}}));
  if (arguments.style.json) {
    print_json(answer);
  } else {
    print(answer, arguments.style);
  }
  return {};
}

Result<void> show_device(const Arguments& arguments) {
  if (arguments.path.empty() && arguments.probe)
    return Error{EINVAL, "--probe needs a device to write to"};
  if (arguments.path.empty()) return list_devices(arguments.style);
  if (names_data(arguments.path))
    return describe_data({arguments.path, arguments.probe, arguments.style});
  if (arguments.probe)
    return Error{EINVAL,
                 "--probe is for a device that is not mounted, and " + arguments.path + " is none"};
  if (!arguments.style.json) return show(arguments, "status", print_device);
  SFS_ASSIGN(const json answer, ask(arguments, {{"op", "status"}}));
  print_json(answer.at("device"));
  return {};
}

Result<void> push_dirty_pages(const std::string& path) {
  SFS_ASSIGN(const std::string root, mount_root(path));
  const int fd = open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Error{errno, root};
  const bool pushed = syncfs(fd) == 0;
  const int code = errno;
  close(fd);
  return pushed ? Result<void>() : Error{code, root};
}

// Has the kernel write its dirty pages back first, because the filesystem can only make durable
// what it was given.
Result<void> sync_all(const Arguments& arguments) {
  SFS_TRY(push_dirty_pages(arguments.path));
  SFS_ASSIGN(const json answer, ask(arguments, {{"op", "sync"}}));
  if (arguments.style.json) print_json(answer);
  return {};
}

Result<void> shut_down(const Arguments& arguments) {
  if (arguments.mode == "default") SFS_TRY(push_dirty_pages(arguments.path));
  SFS_ASSIGN(const json answer, ask(arguments, {{"op", "shutdown"}, {"mode", arguments.mode}}));
  if (arguments.style.json) print_json(answer);
  return {};
}

Result<void> record(const Arguments& arguments, bool start) {
  json request = {{"op", "record"}};
  if (start) {
    request["path"] = absolute_path(arguments.file);
  } else {
    request["stop"] = true;
  }
  SFS_ASSIGN(const json answer, ask(arguments, request));
  if (arguments.style.json) print_json(answer);
  return {};
}

bool running(const json& scrub) {
  return scrub.value("state", "") == "running";
}

// Prints the result of a scrub. Errors: EUCLEAN, it found damage.
Result<void> scrub_result(const Arguments& arguments, const json& scrub) {
  if (arguments.style.json) {
    print_json(scrub);
  } else {
    print_scrub(scrub, arguments.style);
  }
  if (scrub.value("damaged", uint64_t{0}) == 0) return {};
  return Error{EUCLEAN, "damage was found; find MOUNTPOINT -inum INODE names the file"};
}

Result<void> scrub_status(const Arguments& arguments) {
  SFS_ASSIGN(const json scrub, ask(arguments, {{"op", "scrub"}}));
  return scrub_result(arguments, scrub);
}

Result<void> scrub_start(const Arguments& arguments) {
  SFS_TRY(ask(arguments, {{"op", "scrub"}, {"action", "start"}}));
  if (!arguments.wait) return {};
  const bool shows = !arguments.style.json && isatty(STDERR_FILENO) != 0;
  for (;;) {
    SFS_ASSIGN(const json scrub, ask(arguments, {{"op", "scrub"}}));
    if (shows) {
      fmt::print(stderr, "\r{} of about {} inodes ", scrub.value("inodes", uint64_t{0}),
                 scrub.value("inodes_in_all", uint64_t{0}));
    }
    if (!running(scrub)) {
      if (shows) fmt::print(stderr, "\n");
      return scrub_result(arguments, scrub);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

Result<void> scrub_stop(const Arguments& arguments) {
  SFS_TRY(ask(arguments, {{"op", "scrub"}, {"action", "stop"}}));
  return {};
}

Result<void> grow(const Arguments& arguments) {
  json request = {{"op", "grow"}, {"dry_run", arguments.dry_run}};
  if (!arguments.meta_size.empty()) {
    SFS_ASSIGN(const uint64_t bytes, parse_size(arguments.meta_size));
    request["meta_size"] = bytes;
  }
  SFS_ASSIGN(const json grown, ask(arguments, request));
  if (arguments.style.json) {
    print_json(grown);
  } else {
    print_grown(grown, arguments.style);
  }
  return {};
}

// The commands whose options are Arguments. A command with a file of its own declares itself in a
// CommandSet.
class Commands : public CommandSet {
 public:
  explicit Commands(Arguments& arguments) : arguments_(arguments) {}
  CLI::App* add(CLI::App& parent, const char* name, const char* help,
                std::function<Result<void>(const Arguments&)> action) {
    return CommandSet::add(parent, name, help,
                           [this, action = std::move(action)](const Style& style) {
                             arguments_.style = style;
                             return action(arguments_);
                           });
  }
  void add_mountpoint(CLI::App* command) { tools::add_mountpoint(command, arguments_.path); }

 private:
  Arguments& arguments_;
};

void declare_trace(CLI::App& app, Commands& commands, Arguments& arguments) {
  CLI::App* trace = app.add_subcommand("trace", "Record all writes and trims");
  trace->require_subcommand(1);
  CLI::App* start = commands.add(*trace, "start", "Start to record into FILE",
                                 [](const Arguments& a) { return record(a, true); });
  start->add_option("FILE", arguments.file, "The trace file")->required();
  commands.add_mountpoint(start);
  commands.add_mountpoint(commands.add(*trace, "stop", "Stop recording",
                                       [](const Arguments& a) { return record(a, false); }));
}

void declare_scrub(CLI::App& app, Commands& commands, Arguments& arguments) {
  CLI::App* scrub = app.add_subcommand(
      "scrub", "Read all metadata and data, and report damage; gives way to programs");
  scrub->require_subcommand(1);
  CLI::App* start = commands.add(*scrub, "start", "Start a scrub", scrub_start);
  start->add_flag("--wait", arguments.wait, "Wait until it is done, then print its status");
  commands.add_mountpoint(start);
  CLI::App* stop = commands.add(
      *scrub, "stop", "Stop the scrub (also: cancel); fails if none is running", scrub_stop);
  stop->alias("cancel");
  commands.add_mountpoint(stop);
  commands.add_mountpoint(commands.add(
      *scrub, "status", "Print progress and damage found; exit code 76: damage", scrub_status));
}

void declare_maintenance(CLI::App& app, Commands& commands, Arguments& arguments) {
  commands.add_mountpoint(commands.add(app, "trim", "Trim all free space, as fstrim(8) does",
                                       [](const Arguments& a) { return trim(a.maintenance()); }));
  CLI::App* now = commands.add(app, "maintain", "Do idle work now; gives way to programs",
                               [](const Arguments& a) { return maintain(a.maintenance()); });
  now->add_option("--seconds", arguments.seconds, "Work at most so many seconds (default 60)")
      ->check(at_least(0));
  commands.add_mountpoint(now);
  CLI::App* off = commands.add(
      app, "prepare-poweroff", "Make everything durable, then let the SSD collect garbage",
      [](const Arguments& a) { return prepare_poweroff(a.maintenance()); });
  off->add_option("--deadline", arguments.seconds, "Give the SSD so many seconds (default 60)")
      ->check(at_least(0));
  off->add_flag("--if-stopping", arguments.if_stopping,
                "Do nothing unless systemd is shutting the machine down");
  commands.add_mountpoint(off);
  commands.add_mountpoint(commands.add(
      app, "watch-suspend",
      "Stay, and do as prepare-poweroff for at most 3 s before each sleep of the machine (logind)",
      [](const Arguments& a) { return watch_suspend(a.maintenance()); }));
}

void declare_metadata(CLI::App& app, Commands& commands, Arguments& arguments) {
  CLI::App* metadata = app.add_subcommand(
      "metadata", "Save or load the metadata of an unmounted filesystem as one file");
  metadata->require_subcommand(1);
  CLI::App* dump = commands.add(*metadata, "dump", "Write all metadata to FILE",
                                [](const Arguments& a) { return dump_metadata(a.metadata()); });
  CLI::App* restore = commands.add(
      *metadata, "restore", "Write the metadata of FILE to META, if DATA was not mounted since",
      [](const Arguments& a) { return restore_metadata(a.metadata()); });
  restore->add_flag("-f,--force", arguments.force, "Overwrite META's content");
  restore->add_option("--mirror", arguments.mirror,
                      "Use this second copy of a META that was kept twice");
  restore->add_flag("--degraded", arguments.degraded,
                    "Write one copy of a META that was kept twice");
  for (CLI::App* command : {dump, restore}) {
    command->add_option("--meta", arguments.meta, "Use this metadata device")->required();
    command->add_option("DATA", arguments.data, "The data device")->required();
    command->add_option("FILE", arguments.file, "The dump file")->required();
  }
}

void declare_device(CLI::App& app, Commands& commands, Arguments& arguments) {
  CLI::App* command = commands.add(app, "device",
                                   "Print a mount's device figures; of an unmounted device, its "
                                   "abilities; without a name, the machine's NVMe devices",
                                   show_device);
  command->add_option("MOUNTPOINT", arguments.path,
                      "A mounted streamfs, or a device: block device, NVMe /dev/ngXnY, emu:PATH");
  command->add_flag("--probe", arguments.probe,
                    "Find out whether placement is honoured: write the device's last block again, "
                    "unchanged, through each pStream");
}

// Makes an unreadable size an error of the command line, not of the filesystem.
CLI::Validator size() {
  return {[](const std::string& text) -> std::string {
            const Result<uint64_t> bytes = parse_size(text);
            return bytes ? "" : bytes.error().context;
          },
          ""};
}

void declare_grow(CLI::App& app, Commands& commands, Arguments& arguments) {
  CLI::App* command = commands.add(
      app, "grow", "Use the room that was added to DATA and META, while programs run", grow);
  command
      ->add_option("--meta-size", arguments.meta_size,
                   "Make META this large (512M, 2G); a file becomes longer")
      ->type_name("SIZE")
      ->check(size());
  command->add_flag("--dry-run", arguments.dry_run,
                    "Print the sizes that would result; change nothing");
  commands.add_mountpoint(command);
}

void declare_shutdown(CLI::App& app, Commands& commands, Arguments& arguments) {
  CLI::App* command = commands.add(
      app, "shutdown",
      "Fail every request with EIO and write nothing until the unmount, to test programs",
      shut_down);
  command
      ->add_option("--mode", arguments.mode,
                   "Before that, make durable: default, everything; logflush, the metadata log; "
                   "nologflush, nothing")
      ->required()
      ->check(CLI::IsMember({"default", "logflush", "nologflush"}));
  commands.add_mountpoint(command);
}

CLI::Validator vstream_name() {
  return {[](const std::string& text) -> std::string {
            stream_vstream stream;
            if (text.empty()) return "the name is empty; --clear takes a label away";
            if (stream_open(&stream, text.c_str()) == 0) return "";
            return "'" + text +
                   "' cannot name a vStream: 1 to 31 bytes, no '/' or control character, not only "
                   "digits (--number)";
          },
          ""};
}

void declare_hint(CLI::App& app, Commands& commands, Arguments& arguments) {
  HintArguments& hints = arguments.hints;
  CLI::App* command =
      commands.add(app, "hint", "Show, list or set the vStreams of files", [](const Arguments& a) {
        HintArguments said = a.hints;
        said.style = a.style;
        return hint(said);
      });
  command->add_option("PATH", hints.paths, "Files and directories on a streamfs")->required();
  auto* name = command->add_option("--name", hints.name, "Label them with the vStream of this name")
                   ->check(vstream_name());
  auto* number =
      command->add_option("--number", hints.number, "Label them with the vStream of this number")
          ->check(CLI::Range(1, 65535));
  auto* clear = command->add_flag("--clear", hints.clear,
                                  "Remove the label, so that rules and learning decide");
  auto* list =
      command->add_flag("-l,--list", hints.list,
                        "List a directory as lsattr(1) does, a line for each entry: s, labelled; "
                        "d, new files in it inherit; the vStream; its lifetime; the path");
  command->add_flag("-R,--recursive", hints.recursive,
                    "Include everything below a directory; follow no links, enter no other mounts");
  command->add_flag("-a,--all", hints.all, "List names that begin with a dot, too")->needs(list);
  command->add_flag("-d,--directory", hints.directory, "List directories themselves")->needs(list);
  name->excludes(number)->excludes(clear)->excludes(list);
  number->excludes(clear)->excludes(list);
  clear->excludes(list);
}

void declare(CLI::App& app, Commands& commands, Arguments& arguments) {
  app.require_subcommand(1);
  commands.add_mountpoint(
      commands.add(app, "status", "Print a mount's devices, counters, memory and placement model",
                   [](const Arguments& a) { return show(a, "status", print_status); }));
  declare_streams(app, commands);
  declare_device(app, commands, arguments);
  commands.add_mountpoint(
      commands.add(app, "sync", "Make everything written so far durable", sync_all));
  declare_grow(app, commands, arguments);
  declare_shutdown(app, commands, arguments);
  declare_hint(app, commands, arguments);
  declare_maintenance(app, commands, arguments);
  declare_scrub(app, commands, arguments);
  declare_trace(app, commands, arguments);
  declare_metadata(app, commands, arguments);
  declare_usage(app, commands);
  declare_iostat(app, commands);
  declare_top(app, commands);
  declare_show_super(app, commands);
  declare_tune(app, commands);
  declare_probe(app, commands);
  declare_export(app, commands);
  declare_setup(app, commands);
  for (const DaemonCommand& each : kDaemonCommands) app.add_subcommand(each.name, each.help);
}

int run(int argc, char** argv) {
  if (const auto became = become_daemon_command(argc, argv); !became)
    return fail(kProgram, became.error());
  CLI::App app("Shows and controls a streamfs, mounted or not.", kProgram);
  Arguments arguments;
  Commands commands(arguments);
  prepare(app);
  app.footer(kExitCodesHelp);
  declare(app, commands, arguments);
  if (const auto code = parse(app, argc, argv)) return *code;
  const Result<void> done = commands.run();
  return done ? exit_code::kOk : fail(kProgram, done.error());
}

}  // namespace

int main(int argc, char** argv) {
  return guarded(kProgram, [=] { return run(argc, argv); });
}
