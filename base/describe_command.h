// A program's command line as data: what --help shows, for man pages and completion.
//
//   PROGRAM --describe-command   prints it and does nothing else; scripts/manual reads it
//
// Thread safety: pure functions but for stdout.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace streamfs {

// JSON: {"name", "description", "footer", "options": [OPTION], "commands": [the same again]}, where
// an OPTION is {"names": ["-f", "--force"], "positional": "DATA" or null, "value": what follows it
// or null, "choices": [...], "help", "required", "many", "default"}.
std::string describe_command(const CLI::App& app);

// Whether the arguments ask for that; then it has been printed.
bool describe_if_asked(const CLI::App& app, int argc, const char* const* argv);

}  // namespace streamfs
