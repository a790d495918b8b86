#include "fuse-fs/tools/check_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/exit_codes.h"
#include "base/result.h"
#include "fuse-fs/tools/failure.h"
#include "fuse-fs/tools/mount_options.h"
#include "fuse-fs/tools/sysfs.h"

namespace streamfs::tools {
namespace {

constexpr std::array<std::string_view, 7> kVariables = {"DATA",
                                                        "META",
                                                        "OPTIONS",
                                                        "POWEROFF_SECONDS",
                                                        "PMEM_NAMESPACE",
                                                        "LISTEN",
                                                        "CLASSIFIERD_OPTIONS"};

// Returns whether the text has the form "namespace0.0".
bool is_namespace(std::string_view text) {
  constexpr std::string_view kPrefix = "namespace";
  if (!text.starts_with(kPrefix)) return false;
  text.remove_prefix(kPrefix.size());
  const size_t dot = text.find('.');
  return dot != std::string_view::npos && is_digits(text.substr(0, dot)) &&
         is_digits(text.substr(dot + 1));
}

class ConfigCheck {
 public:
  explicit ConfigCheck(std::string file) : file_(std::move(file)) {}

  void line(std::string_view text) {
    ++number_;
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
      text.remove_prefix(1);
    if (text.empty() || text.front() == '#' || text.front() == ';') return;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) return problem("not KEY=VALUE, and no comment");
    const std::string key(text.substr(0, equals));
    if (std::ranges::find(kVariables, key) == kVariables.end())
      return problem(fmt::format("{}: not one of {}", key, fmt::join(kVariables, ", ")));
    if (!seen_.emplace(key, number_).second)
      return problem(fmt::format("{} is said twice; first in line {}", key, seen_[key]));
    value(key, text.substr(equals + 1));
  }

  std::vector<std::string> end() {
    for (const char* needed : {"DATA", "META"})
      if (!seen_.contains(needed)) problems_.push_back(fmt::format("{}: no {}=", file_, needed));
    return std::move(problems_);
  }

 private:
  void problem(const std::string& what) {
    problems_.push_back(fmt::format("{}:{}: {}", file_, number_, what));
  }

  void value(const std::string& key, std::string_view text) {
    const bool opens = !text.empty() && (text.front() == '"' || text.front() == '\'');
    if (opens && (text.size() < 2 || text.back() != text.front()))
      return problem(key + ": a quote that is not closed");
    if (opens) text = text.substr(1, text.size() - 2);
    if (!opens && text.ends_with('\\'))
      return problem(key + ": ends in a backslash, which joins it with the next line");
    if (key == "OPTIONS") return options(text);
    if (text.empty()) return problem(key + " is empty");
    if (key == "PMEM_NAMESPACE" && !is_namespace(text))
      problem(key + ": a namespace of `ndctl list`, such as namespace0.0");
    if (key == "POWEROFF_SECONDS" && (!is_digits(text) || text.size() > 6))
      problem(key + ": a number of seconds");
  }

  void options(std::string_view text) {
    for (const std::string& option : split_options(text)) {
      if (option.starts_with("meta=")) problem("OPTIONS: META= says where META is");
      MountCommand command;
      if (const auto done = apply_option(command, option); !done)
        problem("OPTIONS: " + done.error().context);
    }
  }

  const std::string file_;
  size_t number_ = 0;
  std::map<std::string, size_t> seen_;  // and in which line
  std::vector<std::string> problems_;
};

}  // namespace

Result<std::vector<std::string>> problems_in(const std::string& file) {
  std::ifstream input(file);
  std::error_code failed;
  if (!input || std::filesystem::is_directory(file, failed))
    return Error{input ? EISDIR : errno, file};
  ConfigCheck check(file);
  for (std::string line; std::getline(input, line);) check.line(line);
  return check.end();
}

int check_config(const std::string& file) {
  const Result<std::vector<std::string>> found = problems_in(file);
  if (!found) return fail("streamfs", found.error());
  for (const std::string& problem : *found) fmt::print(stderr, "{}\n", problem);
  return found->empty() ? exit_code::kOk : exit_code::kUsage;
}

}  // namespace streamfs::tools
