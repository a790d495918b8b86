// Profiles as text: what is understood, and where what is wrong is said to be.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <memory>
#include <string>
#include <vector>

#include "libstream/rules.h"
#include "libstream/toml.h"

namespace {

using Errors = std::vector<std::string>;

void collect(void* errors, const char* file, unsigned line, unsigned column, const char* what) {
  static_cast<Errors*>(errors)->push_back(std::string(file) + ":" + std::to_string(line) + ":" +
                                          std::to_string(column) + ": " + what);
}

// A set and the files it was loaded from.
class Profiles : public ::testing::Test {
 public:
  Profiles(const Profiles&) = delete;
  Profiles& operator=(const Profiles&) = delete;
  ~Profiles() override { std::filesystem::remove_all(folder_); }

 protected:
  Profiles() {
    stream_rules_clear(set_.get());
    std::string folder = (std::filesystem::temp_directory_path() / "profiles.XXXXXX").string();
    folder_ = mkdtemp(folder.data());
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  // The errors of one profile of that text, "line:column: what".
  Errors parse(const std::string& text) {
    write("p.toml", text);
    Errors errors;
    const std::string path = (folder_ / "p.toml").string();
    EXPECT_EQ(stream_rules_load_file(set_.get(), path.c_str(), collect, &errors), 0);
    for (std::string& error : errors) error.erase(0, path.size() + 1);
    EXPECT_EQ(stream_rules_choose(set_.get(), "p"), 0);
    return errors;
  }
  std::string label(const char* path, int flags = O_RDWR) {
    const stream_rule* rule = stream_rules_match(set_.get(), path, flags, "worker");
    return rule == nullptr ? "" : rule->vstream;
  }
  std::filesystem::path folder_;
  std::unique_ptr<stream_rules> set_ = std::make_unique<stream_rules>();
};

TEST_F(Profiles, AllThatIsUnderstood) {
  EXPECT_EQ(parse("# a comment\r\n"
                  "about = 'say \"it\"' # and one behind\n"
                  "[[rule]]\n"
                  "name = [ # several\n"
                  "  \"*.a\", '*.b',\n"
                  "  \"\\u00e9\\t\\\"\\\\\\\\\",\n"
                  "]\n"
                  "vstream = \"one two\"\n"
                  "life = \"extreme\"\n"
                  "\n"
                  "[[ rule ]]\n"
                  "directory = \"d*\"\n"
                  "thread = \"work*\"\n"
                  "vstream=\"in-d\"\n"
                  "[[rule]]\n"
                  "nameless = true\n"
                  "vstream = \"none\""),
            Errors{});
  EXPECT_EQ(label("x.a"), "one two");
  EXPECT_EQ(label("x.b"), "one two");
  EXPECT_EQ(label("\xc3\xa9\t\"\\"), "one two");
  EXPECT_EQ(label("dir/x"), "in-d");
  EXPECT_EQ(stream_rules_match(set_.get(), "dir/x", O_RDWR, "other"), nullptr);
  EXPECT_EQ(label("", O_TMPFILE), "none");
  EXPECT_STREQ(set_->profiles[0].about, "say \"it\"");
  EXPECT_EQ(set_->rules[0].rw_hint, RWH_WRITE_LIFE_EXTREME);
}

constexpr const char* kGood = "[[rule]]\nname = 'good'\nvstream = 'good'\n";

// Each mistake is reported at its place, and the rules around it still count.
TEST_F(Profiles, EachMistakeIsSaidWithLineAndColumnAndTheRestCounts) {
  const struct {
    const char* text;
    const char* said;
  } mistakes[] = {
      {"[[rule]]\nname = 'a'\nvstream = 'a/b'\n", "6:11: a vStream's name"},
      {"[[rule]]\nname = 'a'\nvstream = '7'\n", "6:11: a vStream's name"},
      {"[[rule]]\nname = 'a'\n", "4:1: this rule names no vstream"},
      {"[[rule]]\nvstream = 'a'\n", "4:1: this rule needs a name"},
      {"[[rule]]\nnameless = true\nname = 'a'\nvstream = 'a'\n", "4:1: a nameless file"},
      {"[[rule]]\nname = 'a[b'\nvstream = 'a'\n", "5:10: a set is"},
      {"[[rule]]\nname = ['a', 'b/c']\nvstream = 'a'\n", "5:16: a pattern is of one name"},
      {"[[rule]]\nname = 'a'\nname = 'b'\nvstream = 'a'\n", "6:8: said twice"},
      {"[[rule]]\nname = 'a'\nvstream = ['a', 'b']\n", "6:17: one string only"},
      {"[[rule]]\nname = 'a'\nvstream = 'a'\nlife = 'long ago'\n", "7:8: a life is"},
      {"[[rule]]\nname = true\nvstream = 'a'\n", "5:8: a string is expected"},
      {"[[rule]]\nnameless = 'yes'\nvstream = 'a'\n", "5:12: true or false is expected"},
      {"[[rule]]\nname = 'a'\nvstream = 'a'\ncolour = 'red'\n", "7:10: a rule has no such key"},
      {"[[rule]]\nname = 'a\nvstream = 'a'\n", "5:10: a string ends on its line"},
      {"[[rule]]\nname = \"a\\q\"\nvstream = 'a'\n", "5:10: no such escape"},
      {"[[rule]]\nname = \"\\ud800\"\nvstream = 'a'\n", "5:9: no such escape"},
      {"[[rule]]\nname = '''a'''\nvstream = 'a'\n", "5:8: strings of more than one line"},
      {"[[rule]]\nname = 'a' 'b'\nvstream = 'a'\n", "5:12: nothing may follow the value"},
      {"[[rule]]\nname = 7\nvstream = 'a'\n", "5:8: a value is a string"},
      {"[[rule]]\nname = ['a' 'b']\nvstream = 'a'\n", "5:13: ',' or ']' is missing"},
      {"[[rule]]\nname = ['a',\n  7,\n  'b']\nvstream = 'a'\n", "6:3: an array holds strings"},
      {"[[rule]]\nname 'a'\nvstream = 'a'\n", "5:6: '=' is missing"},
      {"[[rule]]\n'name' = 'a'\nvstream = 'a'\n", "5:1: a key or [[table]] is expected"},
      {"[rule]\nname = 'a'\nvstream = 'a'\n", "4:1: a plain [table]"},
      {"[[rule]] x\nname = 'a'\nvstream = 'a'\n", "4:10: nothing may follow"},
      {"[[rules]]\nname = 'a'\nvstream = 'a'\n", "4:1: there are tables [[rule]] only"},
  };
  for (const auto& mistake : mistakes) {
    stream_rules_clear(set_.get());
    const Errors errors = parse(std::string(kGood) + mistake.text + "[[rule]]\nname = 'after'\n" +
                                "vstream = 'after'\n");
    ASSERT_EQ(errors.size(), 1u) << mistake.text << ::testing::PrintToString(errors);
    EXPECT_TRUE(errors[0].starts_with(mistake.said)) << mistake.text << errors[0];
    EXPECT_EQ(label("good"), "good") << mistake.text;
    EXPECT_EQ(label("after"), "after") << mistake.text;
    EXPECT_EQ(label("a"), "") << "a rule with a mistake is left out: " << mistake.text;
  }
}

TEST_F(Profiles, AMistakeBeforeTheFirstRuleLeavesTheRules) {
  const Errors errors = parse(std::string("everywhere = 'no'\nname = 'a'\n") + kGood);
  EXPECT_EQ(errors, (Errors{"1:14: true or false is expected", "2:8: a profile has no such key"}));
  EXPECT_EQ(label("good"), "good");
}

TEST_F(Profiles, NoTextIsReadPastItsEnd) {
  const std::string whole =
      "about = \"\\u00e9\"\n[[rule]]\nname = [\"a\", 'b', # c\n]\nvstream = \"v\\t\"\nnameless = "
      "true\n";
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    // On the heap, whole: the address sanitizer sees one byte too many.
    std::vector<char> text(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut));
    text.push_back('\0');
    stream_toml reader;
    stream_toml_begin(&reader, text.data());
    int events = 0;
    while (stream_toml_next(&reader) != STREAM_TOML_END) ASSERT_LT(++events, 100) << cut;
  }
}

TEST_F(Profiles, AFolderIsReadInOrderOfNamesAndTheFirstOfANameCounts) {
  std::filesystem::create_directory(folder_ / "second");
  write("b.toml", "[[rule]]\nname = 'x*'\nvstream = 'from-b'\n");
  write("a.toml", "[[rule]]\nname = 'x'\nvstream = 'from-a'\n");
  write(".hidden.toml", "nonsense");
  write("c.toml~", "nonsense");
  write("second/a.toml", "[[rule]]\nname = 'y'\nvstream = 'hidden'\n");
  Errors errors;
  stream_rules_load_folder(set_.get(), folder_.c_str(), collect, &errors);
  stream_rules_load_folder(set_.get(), (folder_ / "second").c_str(), collect, &errors);
  stream_rules_load_folder(set_.get(), (folder_ / "none").c_str(), collect, &errors);
  EXPECT_EQ(errors, Errors{});
  EXPECT_EQ(set_->profile_count, 3u);
  EXPECT_EQ(stream_rules_choose(set_.get(), nullptr), 0);
  EXPECT_EQ(label("x"), "from-a");
  EXPECT_EQ(label("x1"), "from-b");
  EXPECT_EQ(label("y"), "");
  EXPECT_TRUE(stream_rules_owns(set_.get(), "from-b"));
}

TEST_F(Profiles, AProfileOfOnesOwnStandsInForABuiltInOne) {
  write("sqlite.toml", "[[rule]]\nname = '*-wal'\nvstream = 'my-wal'\n");
  stream_rules_load_folder(set_.get(), folder_.c_str(), nullptr, nullptr);
  stream_rules_load_built_in(set_.get());
  for (const char* profile : {"default", "sqlite"}) {
    ASSERT_EQ(stream_rules_choose(set_.get(), profile), 0);
    EXPECT_EQ(label("a-wal"), "my-wal");
    EXPECT_EQ(label("a-journal"), "");
  }
}

TEST_F(Profiles, WhatCannotBeReadIsReportedOrReturned) {
  write("nul.toml", std::string("about = 'a\0b'\n", 14));
  write("ok.toml", kGood);
  write("z-long.toml", std::string(STREAM_PROFILES_BYTES, '#'));
  std::filesystem::create_directory(folder_ / "folder.toml");
  Errors errors;
  stream_rules_load_folder(set_.get(), folder_.c_str(), collect, &errors);
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_NE(errors[0].find("folder.toml:0:0: cannot be read"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("nul.toml:0:0: a NUL byte"), std::string::npos) << errors[1];
  EXPECT_NE(errors[2].find("z-long.toml:0:0: profiles are too long"), std::string::npos);
  stream_rules_choose(set_.get(), nullptr);
  EXPECT_EQ(label("good"), "good");
  EXPECT_EQ(stream_rules_load_file(set_.get(), "/no/such", collect, &errors), -ENOENT);
}

TEST_F(Profiles, TooManyRulesAreLeftOutAndSaid) {
  std::string text = kGood;
  for (int i = 0; i < STREAM_RULES_MAX; ++i) text += "[[rule]]\nname='n'\nvstream='n'\n";
  const Errors errors = parse(text);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_TRUE(errors[0].ends_with("more than 512 rules in all profiles"));
  EXPECT_EQ(label("good"), "good");
}

TEST_F(Profiles, ARuleIsShownWithItsProfile) {
  parse("[[rule]]\ndirectory='d'\nname='*.x'\nthread='t'\nvstream='v'\n");
  char text[STREAM_RULE_TEXT_BYTES];
  stream_rule_text(&set_->rules[0], text);
  EXPECT_STREQ(text, "p's d/*.x of thread t");
}

}  // namespace
