// The subcommands of a program: each with --json and -p, and what it does. A command lives in a
// file of its own, which declares it here (declare_usage() and the like).
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
  // The last command that was named runs; `action` keeps what its options are bound to.
  CLI::App* add(CLI::App& parent, const char* name, const char* help, Action action);
  Result<void> run() const;

 private:
  Style style_;
  Action chosen_;
};

// A number of seconds between these; "nan" is none, which CLI::Range lets pass.
CLI::Validator seconds_between(double least, double most);

// MOUNTPOINT, as every command that talks to a mount has it.
void add_mountpoint(CLI::App* command, std::string& path);

}  // namespace streamfs::tools
