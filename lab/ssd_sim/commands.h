// The subcommands of ssd-sim. Each adds itself to the command line; run() is called once the line
// is parsed and returns an exit code (base/exit_codes.h).
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "ssd/geometry.h"

namespace streamfs::lab::ssd_sim {

class Command {
 public:
  virtual ~Command() = default;
  virtual int run() = 0;
  bool chosen() const { return app_->parsed(); }

 protected:
  explicit Command(CLI::App* app) : app_(app) {}
  CLI::App* app_;
};

std::unique_ptr<Command> make_create_command(CLI::App& parent);
std::unique_ptr<Command> make_info_command(CLI::App& parent);
std::unique_ptr<Command> make_reset_stats_command(CLI::App& parent);
std::unique_ptr<Command> make_serve_command(CLI::App& parent);
std::unique_ptr<Command> make_replay_command(CLI::App& parent);
std::unique_ptr<Command> make_bench_command(CLI::App& parent);
std::unique_ptr<Command> make_compare_command(CLI::App& parent);
std::unique_ptr<Command> make_import_command(CLI::App& parent);
std::unique_ptr<Command> make_list_command(CLI::App& parent);
std::unique_ptr<Command> make_model_command(CLI::App& parent);
std::unique_ptr<Command> make_reproduce_command(CLI::App& parent);

// The last words of --help.
inline constexpr const char* kExitCodes =
    "Exit codes: 0 done, 64 wrong option or value, 65 not a trace or damaged, 66 no such file,\n"
    "70 input or output error, 74 no room on the device, 77 no permission.";

// Prints "ssd-sim: ..." to standard error and returns the exit code for this error.
int fail(const Error& error);

// The names of --gc.
const std::map<std::string, ssd::GcMode>& gc_modes();

// "4.0 GiB".
std::string human_bytes(uint64_t bytes);

}  // namespace streamfs::lab::ssd_sim
