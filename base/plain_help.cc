#include "base/plain_help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace streamfs {
namespace {

constexpr std::string_view kOrMore = " or more";
constexpr size_t kLikely = 2;  // letters that a mistyped command differs in

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

// CLI11's "UINT:SIZE [b, kb(=1024b), ...]", "FLOAT:POSITIVE", "TEXT:{own,same}", "UINT:INT in [1 -
// 64]".
std::string plain_type(const std::string& type) {
  const size_t colon = type.find(':');
  std::string kind = type.substr(0, colon);
  if (kind == "UINT" || kind == "INT" || kind == "FLOAT") kind = "NUMBER";
  if (colon == type.npos) return kind;
  std::string more = type.substr(colon + 1);
  if (more.starts_with("SIZE")) return "SIZE";
  if (const size_t begin = more.find('{'); begin != more.npos) {
    more = more.substr(begin + 1, more.find('}') - begin - 1);
    replace_all(more, ",", "|");
    return more;
  }
  if (more.ends_with(kOrMore)) return more;
  const size_t range = more.find("in [");
  if (range == more.npos) return kind;
  more = more.substr(range + 4, more.find(']') - range - 4);
  replace_all(more, " - ", " to ");
  return more;
}

class PlainFormatter final : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    replace_all(name, "{false}", "");
    return name;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    const std::string type = option->get_type_name();
    if (const size_t at = text.find(type); !type.empty() && at != text.npos)
      text.replace(at, type.size(), plain_type(type));
    return text;
  }
};

// The library's sentence names the last argument first.
std::string unexpected(const std::vector<std::string>& arguments) {
  return fmt::format("The following argument{} not expected: {}",
                     arguments.size() == 1 ? " was" : "s were", fmt::join(arguments, " "));
}

// Letters to insert, remove, replace or exchange with their neighbour.
size_t distance(std::string_view from, std::string_view to) {
  std::vector<size_t> last(to.size() + 1), before, now(to.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const bool same = from[i - 1] == to[j - 1];
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0U : 1U)});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before = std::exchange(last, now);
  }
  return last[to.size()];
}

}  // namespace

CLI::Validator at_least(double least) {
  const auto check = [least](const std::string& text) -> std::string {
    double value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc{} || end != text.data() + text.size())
      return fmt::format("\"{}\" is no number", text);
    return value >= least ? "" : fmt::format("{} is not {}{}", text, least, kOrMore);
  };
  return {check, fmt::format("{}{}", least, kOrMore)};
}

std::string plain_error(const CLI::ParseError& error, const CLI::App& app) {
  std::string text = error.what();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError))
    return unexpected(app.remaining(true));
  if (const size_t unit = text.find(" unit not recognized"); unit != text.npos)
    return text.substr(0, unit) + " is no unit of size; write 4096, 64M, 1.5G or 2TiB";
  if (const size_t value = text.find(": 1 required "); value != text.npos)
    return text.substr(0, value) + " needs a value";
  const size_t begin = text.find(" not in {"), end = text.rfind('}');
  if (begin == text.npos || end == text.npos) return text;
  std::string choices = text.substr(begin + 9, end - begin - 9);
  replace_all(choices, ",", ", ");
  return text.substr(0, begin) + " is none of " + choices;
}

void use_plain_help(CLI::App& app) {
  app.formatter(std::make_shared<PlainFormatter>());
}

std::optional<std::string> unknown_command(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto commands = at->get_subcommands(nullptr);
    if (commands.empty() || word.starts_with('-')) return std::nullopt;
    const auto found = std::ranges::find_if(
        commands, [&](const CLI::App* each) { return each->check_name(word); });
    if (found != commands.end()) {
      at = *found;
      continue;
    }
    const std::string said = "no command \"" + word + "\"";
    const auto nearest = std::ranges::min_element(
        commands, {}, [&](const CLI::App* each) { return distance(word, each->get_name()); });
    if (distance(word, (*nearest)->get_name()) > kLikely) return said + "; see --help";
    return said + ": did you mean \"" + (*nearest)->get_name() + "\"?";
  }
  return std::nullopt;
}

}  // namespace streamfs
