// What every program's command line shares: CLI11 set up our way, sizes, paths that survive chdir.
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

// --version, and errors as one line. Returns the exit code when there is nothing more to do.
void prepare(CLI::App& app);
std::optional<int> parse(CLI::App& app, int argc, char** argv);

// "4096", "64M", "1.5G", "2TiB": bytes. EINVAL with a sentence otherwise.
Result<uint64_t> parse_size(std::string_view text);

// DATA as the devices know it: a path made absolute, with "emu:" or the like kept before it.
std::string absolute_data(const std::string& data);
std::string absolute_path(const std::string& path);

// The body of a main(): what is thrown by a library ends as one line, too.
int guarded(const char* program, const std::function<int()>& body) noexcept;

}  // namespace streamfs::tools
