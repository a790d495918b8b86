// A program's command line as data, for man pages and completion.
#include "base/describe_command.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace streamfs {
namespace {

using nlohmann::json;

struct Words {
  std::string mode, data;
  std::vector<std::string> files;
  bool quiet = false;
};

void declare(CLI::App& app, Words& words) {
  app.footer("Exit codes: 0 done.");
  CLI::App* make = app.add_subcommand("make", "Makes it");
  make->add_flag("-q,--quiet", words.quiet, "Say nothing");
  make->add_option("--mode", words.mode, "How")->check(CLI::IsMember({"fast", "slow"}))->required();
  make->add_option("DATA", words.data, "Where")->required();
  make->add_option("FILE", words.files, "What else");
  app.add_subcommand("secret", "Not for people")->group("");
}

json option_of(const json& command, const std::string& name) {
  for (const json& option : command.at("options")) {
    if (option.at("positional") == name) return option;
    for (const json& each : option.at("names"))
      if (each == name) return option;
  }
  return {};
}

TEST(DescribeCommand, TellsEveryOptionAsItIsDeclared) {
  CLI::App app("Does things.", "doer");
  Words words;
  declare(app, words);
  const json all = json::parse(describe_command(app));
  EXPECT_EQ(all.at("name"), "doer");
  EXPECT_EQ(all.at("footer"), "Exit codes: 0 done.");
  ASSERT_EQ(all.at("commands").size(), 1U) << "a hidden one is shown";
  const json& make = all.at("commands").at(0);
  const json quiet = option_of(make, "--quiet");
  EXPECT_EQ(quiet.at("names"), json({"-q", "--quiet"}));
  EXPECT_TRUE(quiet.at("value").is_null());
  const json mode = option_of(make, "--mode");
  EXPECT_EQ(mode.at("choices"), json({"fast", "slow"}));
  EXPECT_EQ(mode.at("required"), true);
  EXPECT_EQ(option_of(make, "DATA").at("many"), false);
  EXPECT_EQ(option_of(make, "FILE").at("many"), true);
}

TEST(DescribeCommand, IsPrintedOnlyWhereItAloneIsAskedFor) {
  const CLI::App app("Does things.", "doer");
  const std::array<const char*, 3> more = {"doer", "--describe-command", "x"};
  EXPECT_FALSE(describe_if_asked(app, 3, more.data()));
  EXPECT_FALSE(describe_if_asked(app, 1, more.data()));
  testing::internal::CaptureStdout();
  EXPECT_TRUE(describe_if_asked(app, 2, more.data()));
  EXPECT_EQ(json::parse(testing::internal::GetCapturedStdout()).at("name"), "doer");
}

}  // namespace
}  // namespace streamfs
