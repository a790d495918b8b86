#include "fuse-fs/tools/command_line.h"

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/describe_command.h"
#include "base/exit_codes.h"
#include "base/plain_help.h"
#include "base/result.h"
#include "base/version.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/tools/failure.h"

namespace streamfs::tools {
namespace {

constexpr std::string_view kUnits = "KMGTP";

}  // namespace

void prepare(CLI::App& app) {
  app.set_version_flag("-V,--version", std::string(kVersion));
  app.set_help_flag("-h,--help", "Print this and exit");
  use_plain_help(app);
}

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  if (describe_if_asked(app, argc, argv)) return exit_code::kOk;
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const std::string said =
        unknown_command(app, argc, argv).value_or(plain_error(error, app) + "; see --help");
    return fail(app.get_name(), Failure{exit_code::kUsage, said});
  }
}

int guarded(const char* program, const std::function<int()>& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of memory; give it more (MemoryMax=, ulimit -v)\n", program);
  } catch (const std::system_error& thrown) {
    const bool no_thread = thrown.code() == std::errc::resource_unavailable_try_again;
    std::fprintf(stderr, "%s: %s%s\n", program, no_thread ? "cannot start a thread: " : "",
                 no_thread ? "give it more memory (MemoryMax=, ulimit -v) or processes (TasksMax=, "
                             "ulimit -u)"
                           : thrown.what());
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "%s: %s\n", program, thrown.what());
  } catch (...) {
    std::fprintf(stderr, "%s: failed\n", program);
  }
  return exit_code::kIo;
}

Result<uint64_t> parse_size(std::string_view text) {
  const Error bad{EINVAL, fmt::format("\"{}\" is no size; write 4096, 64M, 1.5G or 2TiB", text)};
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || value < 0 || !std::isfinite(value)) return bad;
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (!unit.empty()) {
    const size_t power = kUnits.find(static_cast<char>(std::toupper(unit.front())));
    if (power == std::string_view::npos) return bad;
    value *= std::pow(1024.0, static_cast<double>(power + 1));
    unit.remove_prefix(1);
  }
  if (!unit.empty() && unit != "iB" && unit != "B") return bad;
  if (value >= 9e18) return bad;
  return static_cast<uint64_t>(value);
}

std::string absolute_path(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path full = std::filesystem::absolute(path, failed);
  return failed ? path : full.lexically_normal().string();
}

std::string absolute_data(const std::string& data) {
  const std::string path(blockdev::path_of(data));
  return data.substr(0, data.size() - path.size()) + absolute_path(path);
}

}  // namespace streamfs::tools
