// The subcommands of a program, each with --json, -p and an action. A command lives in a file of
// its own, which declares it here (declare_usage() and the like).
// Thread safety: one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "base/result.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

class CommandSet {
 public:
  using Action = std::function<Result<void>(const Style&)>;
  // Adds a command; run() runs the last one that was named. `action` owns the variables that the
  // command's options are bound to.
  CLI::App* add(CLI::App& parent, const char* name, const char* help, Action action);
  Result<void> run() const;

 private:
  Style style_;
  Action chosen_;
};

// Accepts a number of seconds between these, and rejects "nan", which CLI::Range accepts.
CLI::Validator seconds_between(double least, double most);

// Adds MOUNTPOINT, which every command that talks to a mount has.
void add_mountpoint(CLI::App* command, std::string& path);

}  // namespace streamfs::tools
