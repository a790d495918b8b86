// Parts of every program's command line: CLI11 set up alike, sizes, paths that survive chdir.
// Thread safety: pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace streamfs::tools {

// prepare() sets --version, --help and the form of the help text. parse() returns nullopt if the
// program shall run, else its exit code, after it printed the help, the version, or an error as one
// line on stderr.
void prepare(CLI::App& app);
std::optional<int> parse(CLI::App& app, int argc, char** argv);

// Parses a size such as "4096", "64M", "1.5G" or "2TiB". Errors: EINVAL, with a sentence.
Result<uint64_t> parse_size(std::string_view text);

// Makes the path of DATA absolute, and keeps a prefix such as "emu:".
std::string absolute_data(const std::string& data);
std::string absolute_path(const std::string& path);

// Runs the body of a main() and returns its exit code. An exception becomes one line on stderr and
// exit_code::kIo.
int guarded(const char* program, const std::function<int()>& body) noexcept;

}  // namespace streamfs::tools
