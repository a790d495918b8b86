#include "fuse-fs/tools/command_set.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

CLI::App* CommandSet::add(CLI::App& parent, const char* name, const char* help, Action action) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->add_flag("--json", style_.json, "Print JSON");
  command->add_flag("-p,--parsable", style_.raw, "Print plain numbers: bytes, counts");
  command->callback([this, action = std::move(action)] { chosen_ = action; });
  return command;
}

Result<void> CommandSet::run() const {
  Style style = style_;
  style.colour = may_colour(STDOUT_FILENO);
  return chosen_(style);
}

CLI::Validator seconds_between(double least, double most) {
  const auto check = [=](const std::string& text) -> std::string {
    double value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool number = failed == std::errc{} && end == text.data() + text.size();
    if (number && value >= least && value <= most) return "";
    return fmt::format("\"{}\" is no number of seconds from {} to {}", text, least, most);
  };
  return {check, ""};
}

void add_mountpoint(CLI::App* command, std::string& path) {
  command->add_option("MOUNTPOINT", path, "A mounted streamfs")->required();
}

}  // namespace streamfs::tools
