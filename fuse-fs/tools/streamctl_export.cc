#include "fuse-fs/tools/streamctl_export.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/human_bytes.h"
#include "base/result.h"
#include "base/table.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/tools/archive_writer.h"
#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/launch.h"
#include "fuse-fs/tools/output.h"
#include "fuse-fs/tools/tree_export.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;
using WallClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kProgressEvery{200};

struct ExportArguments {
  std::string data, meta, mirror, target;
  std::vector<std::string> paths;
  bool from_log = false;
};

json findings_json(const std::vector<ExportReport::Finding>& findings) {
  json out = json::array();
  for (const auto& each : findings) out.push_back({{"path", each.path}, {"what", each.what}});
  return out;
}

json report_json(const ExportReport& report) {
  return {{"files", report.files},
          {"directories", report.directories},
          {"hard_links", report.hard_links},
          {"others", report.others},
          {"bytes", report.bytes},
          {"damaged", findings_json(report.damaged)},
          {"not_written", findings_json(report.not_written)},
          {"not_whole", findings_json(report.not_whole)}};
}

void print_findings(const char* what, const std::vector<ExportReport::Finding>& findings) {
  for (const auto& each : findings)
    fmt::print(stderr, "{}: {}: {}\n", what, printable(each.path), printable(each.what));
}

// Prints the report, to standard error if the archive goes to standard output.
void print_report(const ExportReport& report, const ExportArguments& arguments,
                  const Style& style) {
  std::FILE* const to = arguments.target == "-" ? stderr : stdout;
  print_findings("damaged, left out", report.damaged);
  print_findings("not written", report.not_written);
  print_findings("written, but not whole", report.not_whole);
  if (style.json) return fmt::print(to, "{}\n", json_text(report_json(report)));
  fmt::print(to, "{} files, {} directories, {} hard links, {} others; {} of data\n", report.files,
             report.directories, report.hard_links, report.others, bytes_text(report.bytes, style));
}

Result<void> verdict(const ExportReport& report) {
  if (!report.damaged.empty()) {
    return Error{EUCLEAN, fmt::format("{} damaged and left out, see above; all else was taken",
                                      report.damaged.size())};
  }
  const size_t lacking = report.not_written.size() + report.not_whole.size();
  if (lacking == 0) return {};
  return Error{EIO, fmt::format("{} could not be written as they are, see above", lacking)};
}

Result<void> export_files(const ExportArguments& arguments, const Style& style) {
  if (arguments.meta.empty() && !arguments.from_log)
    return Error{EINVAL,
                 "name the metadata device (--meta META), or rebuild what it held from the "
                 "log on DATA (--from-log)"};
  log_to_stderr(Talk::kWarnings);
  data::MountOptions options;
  options.read_only = true;
  options.degraded = arguments.mirror.empty();  // one copy is enough
  options.meta_in_memory = arguments.from_log;
  if (!arguments.mirror.empty()) options.mirror_path = absolute_path(arguments.mirror);
  const std::string meta = arguments.from_log ? "META" : absolute_path(arguments.meta);
  SFS_ASSIGN(const auto fs,
             data::Filesystem::mount(meta, absolute_data(arguments.data), options, system_clock()));
  SFS_ASSIGN(const auto out, ArchiveWriter::open(arguments.target));
  const bool shows = !style.json && isatty(STDERR_FILENO) == 1;
  auto shown = WallClock::now();
  const auto progress = [&](const ExportReport& so_far) {
    if (!shows || WallClock::now() - shown < kProgressEvery) return;
    shown = WallClock::now();
    fmt::print(stderr, "\r{} files, {} ", so_far.files, human_bytes(so_far.bytes));
  };
  ExportReport report;
  const Result<void> done = export_tree(*fs, arguments.paths, *out, report, progress);
  if (shows) fmt::print(stderr, "\r\033[K");
  print_report(report, arguments, style);
  SFS_TRY(done);
  return verdict(report);
}

}  // namespace

void declare_export(CLI::App& app, CommandSet& commands) {
  const auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = commands.add(
      app, "export", "Copy files out of an unmounted filesystem, which is only read, without FUSE",
      [arguments](const Style& style) { return export_files(*arguments, style); });
  command->add_option("DATA", arguments->data, "The data device")->required();
  command->add_option("PATH", arguments->paths,
                      "Copy only these paths, from the root on (default: everything)");
  command
      ->add_option("-o,--output", arguments->target,
                   "Write to a new or empty directory, or to an archive: NAME.tar, .tar.gz, "
                   ".tar.xz, .tar.zst, - for standard output")
      ->required();
  auto* meta = command->add_option("--meta", arguments->meta, "Use this metadata device");
  command->add_option("--mirror", arguments->mirror, "Use this second copy of META")->needs(meta);
  command
      ->add_flag("--from-log", arguments->from_log,
                 "Rebuild a lost META in memory from the log on DATA")
      ->excludes(meta);
}

}  // namespace streamfs::tools
