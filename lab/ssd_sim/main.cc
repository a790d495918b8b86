// ssd-sim: makes, shows and serves emulated SSDs; replays traces and workloads on them.
#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/describe_command.h"
#include "base/exit_codes.h"
#include "base/plain_help.h"
#include "base/result.h"
#include "base/version.h"
#include "lab/ssd_sim/commands.h"
#include "ssd/geometry.h"

namespace streamfs::lab::ssd_sim {

int fail(const Error& error) {
  fmt::print(stderr, "ssd-sim: {}\n", error.message());
  switch (error.code) {
    case ENOENT:
    case ENOTDIR:
      return exit_code::kNoDevice;
    case EACCES:
    case EPERM:
      return exit_code::kNoPermission;
    case EBUSY:
      return exit_code::kBusy;
    case EEXIST:
      return exit_code::kNotEmpty;
    case EINVAL:
      return error.context.starts_with("impossible geometry") ? exit_code::kUsage
                                                              : exit_code::kForeign;
    default:
      return exit_code::kIo;
  }
}

const std::map<std::string, ssd::GcMode>& gc_modes() {
  static const std::map<std::string, ssd::GcMode> modes = {
      {"same", ssd::GcMode::kSameStream},
      {"own", ssd::GcMode::kOwnFrontier},
      {"shared", ssd::GcMode::kShared},
      {"persistently-isolated", ssd::GcMode::kOwnFrontier},
      {"initially-isolated", ssd::GcMode::kShared}};
  return modes;
}

std::string human_bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, kUnits[unit]);
}

}  // namespace streamfs::lab::ssd_sim

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): CLI11 reports by throwing
  namespace sim = streamfs::lab::ssd_sim;
  CLI::App app("Emulated SSDs with streams: make, show, serve; replay and compare.", "ssd-sim");
  app.set_version_flag("-V,--version", std::string(streamfs::kVersion));
  streamfs::use_plain_help(app);
  app.require_subcommand(1);
  std::vector<std::unique_ptr<sim::Command>> commands;
  for (const auto make :
       {sim::make_create_command, sim::make_info_command, sim::make_reset_stats_command,
        sim::make_serve_command, sim::make_replay_command, sim::make_bench_command,
        sim::make_compare_command, sim::make_import_command, sim::make_list_command,
        sim::make_model_command, sim::make_reproduce_command})
    commands.push_back(make(app));
  if (streamfs::describe_if_asked(app, argc, argv)) return streamfs::exit_code::kOk;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const auto unknown = streamfs::unknown_command(app, argc, argv);
    fmt::print(stderr, "ssd-sim: {}\n",
               unknown.value_or(streamfs::plain_error(error, app) + "; see --help"));
    return streamfs::exit_code::kUsage;
  }
  for (const auto& command : commands)
    if (command->chosen()) return command->run();
  return streamfs::exit_code::kUsage;
}
