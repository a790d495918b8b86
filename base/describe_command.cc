#include "base/describe_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>

namespace streamfs {
namespace {

using nlohmann::json;

// CLI11 tells what may be said as a part of the type: "TEXT:{own,same}", "UINT:INT in [1 - 64]".
json choices_of(const std::string& type) {
  json out = json::array();
  const size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return out;
  std::istringstream words(type.substr(begin + 1, end - begin - 1));
  for (std::string word; std::getline(words, word, ',');) {
    const size_t arrow = word.find("->");  // of a map, the names only
    out.push_back(word.substr(0, arrow));
  }
  return out;
}

json names_of(const CLI::Option& option) {
  json out = json::array();
  for (const std::string& name : option.get_snames()) out.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.push_back("--" + name);
  return out;
}

json describe_option(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const bool positional = option.get_positional();
  const bool takes_value = positional || option.get_items_expected_max() > 0;
  return {{"names", names_of(option)},
          {"positional", positional ? json(option.get_name(true)) : json()},
          {"value", takes_value ? json(type.substr(0, type.find(':'))) : json()},
          {"choices", choices_of(type)},
          {"help", option.get_description()},
          {"required", option.get_required()},
          {"many", option.get_items_expected_max() > 1},
          {"default", option.get_default_str()}};
}

json describe(const CLI::App& app) {
  json options = json::array();
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) options.push_back(describe_option(*option));
  json commands = json::array();
  for (const CLI::App* command : app.get_subcommands(nullptr))
    if (!command->get_group().empty()) commands.push_back(describe(*command));
  return {{"name", app.get_name()},
          {"description", app.get_description()},
          {"footer", app.get_footer()},
          {"options", options},
          {"commands", commands}};
}

}  // namespace

std::string describe_command(const CLI::App& app) {
  return describe(app).dump(1);
}

bool describe_if_asked(const CLI::App& app, int argc, const char* const* argv) {
  if (argc != 2 || std::string_view(argv[1]) != "--describe-command") return false;
  std::puts(describe_command(app).c_str());
  return true;
}

}  // namespace streamfs
