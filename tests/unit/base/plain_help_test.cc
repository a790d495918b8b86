#include "base/plain_help.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace streamfs {
namespace {

std::optional<std::string> said_of(std::vector<const char*> words) {
  CLI::App app("Does things.", "doer");
  app.add_subcommand("status", "");
  app.add_subcommand("streams", "");
  CLI::App* trace = app.add_subcommand("trace", "");
  trace->add_subcommand("start", "");
  trace->add_subcommand("stop", "");
  words.insert(words.begin(), "doer");
  return unknown_command(app, static_cast<int>(words.size()), words.data());
}

TEST(UnknownCommand, IsNamedWithTheLikeliestOne) {
  EXPECT_EQ(said_of({"statu"}), "no command \"statu\": did you mean \"status\"?");
  EXPECT_EQ(said_of({"tsatus"}), "no command \"tsatus\": did you mean \"status\"?");
  EXPECT_EQ(said_of({"trace", "stpo"}), "no command \"stpo\": did you mean \"stop\"?");
  EXPECT_EQ(said_of({"frobnicate"}), "no command \"frobnicate\"; see --help");
  EXPECT_EQ(said_of({"status", "/mnt"}), std::nullopt);
  EXPECT_EQ(said_of({"--help"}), std::nullopt);
  EXPECT_EQ(said_of({}), std::nullopt);
}

TEST(PlainHelp, ShowsNoTypeNamesOfTheLibrary) {
  CLI::App app("Does things.", "doer");
  use_plain_help(app);
  CLI::App* command = app.add_subcommand("make", "");
  uint64_t size = 0, jobs = 0;
  double share = 0;
  bool log = true;
  std::string mode;
  command->add_option("--size", size, "")->transform(CLI::AsSizeValue(false));
  command->add_option("--jobs", jobs, "")->check(CLI::Range(1, 64));
  command->add_option("--share", share, "")->check(at_least(0));
  command->add_option("--mode", mode, "")->check(CLI::IsMember(std::vector{"own", "same"}));
  command->add_flag("--log,!--no-log", log, "");
  const std::string help = command->help();
  for (const char* shown :
       {"--size SIZE", "--jobs 1 to 64", "--share 0 or more", "--mode own|same"})
    EXPECT_NE(help.find(shown), help.npos) << shown << help;
  for (const char* hidden : {"UINT", "FLOAT", "{", "in [", "NONNEGATIVE", "(="})
    EXPECT_EQ(help.find(hidden), help.npos) << hidden << help;
}

TEST(PlainError, NamesWhatIsWrongWithoutTheLibrarysBraces) {
  const auto said = [](std::vector<std::string> words) -> std::string {
    CLI::App app("Does things.", "doer");
    uint64_t size = 0;
    double jobs = 0;
    std::string mode;
    app.add_option("--size", size, "")->transform(CLI::AsSizeValue(false));
    app.add_option("--jobs", jobs, "")->check(at_least(1));
    app.add_option("--mode", mode, "")->check(CLI::IsMember(std::vector{"own", "same"}));
    app.add_subcommand("go", "");
    std::ranges::reverse(words);
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      return plain_error(error, app);
    }
    return "";
  };
  EXPECT_EQ(said({"--jobs", "1.5"}), "");
  EXPECT_EQ(said({"--jobs", "0"}), "--jobs: 0 is not 1 or more");
  EXPECT_EQ(said({"--jobs", "nan"}), "--jobs: nan is not 1 or more");
  EXPECT_EQ(said({"--jobs", "1x"}), "--jobs: \"1x\" is no number");
  EXPECT_EQ(said({"--mode"}), "--mode needs a value");
  EXPECT_EQ(said({"--mode", "sam"}), "--mode: sam is none of own, same");
  EXPECT_EQ(said({"extra"}), "The following argument was not expected: extra");
  EXPECT_EQ(said({"one", "--two", "three"}),
            "The following arguments were not expected: one --two three");
  EXPECT_EQ(said({"go", "one", "two", "three"}),
            "The following arguments were not expected: one two three");
  EXPECT_EQ(said({"--size", "5X"}), "--size: x is no unit of size; write 4096, 64M, 1.5G or 2TiB");
}

}  // namespace
}  // namespace streamfs
