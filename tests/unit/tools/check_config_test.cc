// The verdicts of streamfs --check-config on the files that units read.
#include "fuse-fs/tools/check_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace streamfs::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckConfig : public ::testing::Test {
 protected:
  CheckConfig() {
    std::string name = std::filesystem::temp_directory_path() / "streamfs-config.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~CheckConfig() override { std::filesystem::remove_all(folder_); }
  std::vector<std::string> problems(const std::string& text) {
    const std::string file = folder_ + "/c";
    std::ofstream(file) << text;
    auto found = problems_in(file);
    EXPECT_TRUE(found.ok());
    std::vector<std::string> out;
    for (const std::string& each : *found) {
      EXPECT_TRUE(each.starts_with(file + ":")) << each;
      out.push_back(each.substr(file.size() + 1));
    }
    return out;
  }
  std::string folder_;
};

TEST_F(CheckConfig, WhatTheUnitTakesIsRight) {
  EXPECT_THAT(problems("# a comment\n\n  ; another\nDATA=/dev/ng0n1\nMETA=\"/dev/dax0.0\"\n"
                       "OPTIONS='placement=auto,noatime,idle_work=off'\nPOWEROFF_SECONDS="
                       "20\nLISTEN=127.0.0.1:9567\nPMEM_NAMESPACE=namespace0.0\n"),
              IsEmpty());
  EXPECT_THAT(problems("DATA=emu:/x\nMETA=/y\nOPTIONS=\n"), IsEmpty());
}

TEST_F(CheckConfig, EachMistakeIsToldWithItsLine) {
  EXPECT_THAT(problems("DATA=/d\nMETA=/m\nOPTIONS=placement=magic,shiny\n"),
              ElementsAre(HasSubstr("3: OPTIONS: "), HasSubstr("3: OPTIONS: ")));
  EXPECT_THAT(problems("DATA=/d\n\nMETAA=/m\nMETA=/m\nDATA=/e\n"),
              ElementsAre(HasSubstr("3: METAA: not one of DATA, META"),
                          HasSubstr("5: DATA is said twice; first in line 1")));
  EXPECT_THAT(problems("DATA=\nMETA=\"/m\nnonsense\nPOWEROFF_SECONDS=soon\n"),
              ElementsAre(HasSubstr("1: DATA is empty"), HasSubstr("2: META: a quote"),
                          HasSubstr("3: not KEY=VALUE"), HasSubstr("4: POWEROFF_SECONDS: a num")));
  for (const char* name : {"namespace0", "namespace0.", "namespace.0", "region0.0", "/dev/pmem0"})
    EXPECT_THAT(problems("DATA=/d\nMETA=/m\nPMEM_NAMESPACE=" + std::string(name) + "\n"),
                ElementsAre(HasSubstr("3: PMEM_NAMESPACE: a namespace of")));
  EXPECT_THAT(
      problems("DATA=/d\\\nMETA=/m\nOPTIONS=meta=/other\n"),
      ElementsAre(HasSubstr("1: DATA: ends in a backslash"), HasSubstr("3: OPTIONS: META= says")));
}

TEST_F(CheckConfig, WhatIsMissingIsNamed) {
  EXPECT_THAT(problems(""), ElementsAre(" no DATA=", " no META="));
  EXPECT_EQ(problems_in(folder_ + "/nowhere").error().code, ENOENT);
  EXPECT_FALSE(problems_in(folder_).ok());
}

}  // namespace
}  // namespace streamfs::tools
