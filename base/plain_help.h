// Formats the help and the errors of a command line without the type names of CLI11.
//
// Thread safety: use_plain_help() changes `app`; the rest are pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace streamfs {

// Sets the help format of `app` and of every command added to it later: a value is shown by its
// kind (TEXT, SIZE, NUMBER) or its choices (own|same), a range as "1 to 64" or "1 or more", and a
// flag without "{false}". Requires: called before the command line is parsed.
void use_plain_help(CLI::App& app);

// Returns a check for numbers of at least `least`; help shows "1 or more".
CLI::Validator at_least(double least);

// Returns a sentence for the error, without the library's braces and unit names. Unexpected
// arguments are listed in the order typed.
std::string plain_error(const CLI::ParseError& error, const CLI::App& app);

// Returns a sentence for the first argument that should be a command and is none: "no command
// \"statu\": did you mean \"status\"?", or "…; see --help" if no command is similar. Returns
// nullopt if there is no such argument before the first option.
std::optional<std::string> unknown_command(const CLI::App& app, int argc, const char* const* argv);

}  // namespace streamfs
