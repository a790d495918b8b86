// Help and errors of a command line in plain words, without the type names of CLI11.
//
// Thread safety: pure functions, but for use_plain_help() before the command line is parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace streamfs {

// For `app` and every command that is added to it later: a value is shown by its kind (TEXT, SIZE,
// NUMBER) or its choices (own|same), a range as "1 to 64" or "1 or more", and a flag without its
// opposite's value.
void use_plain_help(CLI::App& app);

// Accepts numbers from `least` on; help shows "1 or more".
CLI::Validator at_least(double least);

// Says what is wrong with a command line of `app`, without the library's braces and unit names;
// arguments that nothing takes are listed in the order typed.
std::string plain_error(const CLI::ParseError& error, const CLI::App& app);

// A sentence for the first argument that should be a command and is none, with the likeliest
// command: "no command \"statu\": did you mean \"status\"?". Nothing if there is no such argument.
std::optional<std::string> unknown_command(const CLI::App& app, int argc, const char* const* argv);

}  // namespace streamfs
