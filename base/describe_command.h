// Describes a program's command line as JSON, for man pages and completion.
//
//   PROGRAM --describe-command   prints it and does nothing else; scripts/manual reads it
//
// Thread safety: pure functions but for stdout.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace streamfs {

// Returns {"name", "description", "footer", "options": [OPTION], "commands": [...]}, where commands
// have the same fields and an OPTION is {"names": ["-f", "--force"], "positional": "DATA" or null,
// "value": its type or null if it takes none, "choices": [...], "help", "required", "many",
// "default"}. Hidden options and commands are left out.
std::string describe_command(const CLI::App& app);

// Prints the description and returns true if --describe-command is the only argument.
bool describe_if_asked(const CLI::App& app, int argc, const char* const* argv);

}  // namespace streamfs
