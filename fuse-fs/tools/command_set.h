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
  // Adds a command; run() runs the last one that the command line names. `action` owns the
  // variables to which the command's options are bound.
  CLI::App* add(CLI::App& parent, const char* name, const char* help, Action action);
  // Runs the command's action and returns its result. Requires: the parser has met a command.
  Result<void> run() const;

 private:
  Style style_;
  Action chosen_;
};

// Returns a check that accepts a number of seconds from `least` to `most`. It rejects "nan", which
// CLI::Range accepts.
CLI::Validator seconds_between(double least, double most);

// Adds MOUNTPOINT, which every command that talks to a mount has.
void add_mountpoint(CLI::App* command, std::string& path);

}  // namespace streamfs::tools
