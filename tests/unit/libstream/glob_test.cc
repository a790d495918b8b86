// Patterns: what fits, what does not, what is refused, and that nothing takes long.
#include "libstream/glob.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <random>
#include <string>

namespace {

bool fits(const std::string& pattern, const std::string& name) {
  return stream_glob_fits(pattern.c_str(), name.data(), name.size()) != 0;
}

TEST(Glob, EachWildcardTakesWhatItSays) {
  EXPECT_TRUE(fits("*-wal", "-wal"));
  EXPECT_TRUE(fits("*-wal", "a-wal-wal"));
  EXPECT_FALSE(fits("*-wal", "a-walk"));
  EXPECT_TRUE(fits("a?c", "abc"));
  EXPECT_FALSE(fits("a?c", "ac"));
  EXPECT_TRUE(fits("*-mj*", "x-mj"));
  EXPECT_TRUE(fits("a*b*c", "a1b2b3c"));
  EXPECT_FALSE(fits("a*b*c", "a1c2b"));
  EXPECT_TRUE(fits("**", ""));
  EXPECT_FALSE(fits("?", ""));
}

TEST(Glob, SetsHaveRangesNegationAndAClosingBracketFirst) {
  EXPECT_TRUE(fits("[a-c]x", "bx"));
  EXPECT_FALSE(fits("[a-c]x", "dx"));
  EXPECT_TRUE(fits("[!a-c]x", "dx"));
  EXPECT_TRUE(fits("[]x]", "]"));
  EXPECT_TRUE(fits("[a-]", "-"));
  EXPECT_TRUE(fits("[\xe0-\xff]", "\xe9")) << "bytes are unsigned";
  EXPECT_TRUE(fits("\\[a\\*", "[a*"));
}

TEST(Glob, ARepeatedSetTakesAllItCan) {
  EXPECT_TRUE(fits("[0-9]{6}.log", "000012.log"));
  EXPECT_FALSE(fits("[0-9]{6}.log", "0000123.log"));
  EXPECT_TRUE(fits("[0-9]{1,3}", "123"));
  EXPECT_FALSE(fits("[0-9]{1,3}", "1234"));
  EXPECT_TRUE(fits("*[0-9]{2}", "x123")) << "a star before it may leave it fewer";
  EXPECT_FALSE(fits("[0-9]{0,3}5", "15")) << "it gives nothing back";
  EXPECT_TRUE(fits("a{2}", "a{2}")) << "a brace behind no set is itself";
}

TEST(Glob, WhatIsMalformedIsSaidWithItsPlaceAndFitsNothing) {
  const auto place = [](const char* pattern) {
    size_t at = 99;
    return stream_glob_error(pattern, &at) == nullptr ? -1 : static_cast<int>(at);
  };
  EXPECT_EQ(place("a*[0-9]{1,2}?"), -1);
  EXPECT_EQ(place(""), 0);
  EXPECT_EQ(place("ab/c"), 2);
  EXPECT_EQ(place("a[bc"), 1);
  EXPECT_EQ(place("a[]"), 1);
  EXPECT_EQ(place("[a]{3,2}"), 0);
  EXPECT_EQ(place("[a]{0}"), 0);
  EXPECT_EQ(place("[a]{256}"), 0);
  EXPECT_EQ(place("[a]{1"), 0);
  EXPECT_EQ(place("a\\"), 1);
  EXPECT_FALSE(fits("a[bc", "ab"));
  EXPECT_FALSE(fits("*\\", "a"));
}

// The obvious way, exponential: by trying every length for a star. Patterns without repetition.
bool fits_slowly(const char* pattern, const std::string& name) {
  if (*pattern == '\0') return name.empty();
  if (*pattern == '*') {
    for (size_t taken = 0; taken <= name.size(); ++taken) {
      if (fits_slowly(pattern + 1, name.substr(taken))) return true;
    }
    return false;
  }
  if (name.empty() || (*pattern != '?' && *pattern != name[0])) return false;
  return fits_slowly(pattern + 1, name.substr(1));
}

TEST(Glob, AgreesWithTheObviousWayOnDrawnPatterns) {
  std::mt19937 random(1);
  const auto draw = [&](const char* from, size_t kinds, size_t length_max) {
    std::string out;
    for (size_t length = random() % (length_max + 1); length > 0; --length) {
      out += from[random() % kinds];
    }
    return out;
  };
  int fitting = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string pattern = draw("ab*?", 4, 7);
    const std::string name = draw("ab", 2, 8);
    const bool expected = fits_slowly(pattern.c_str(), name);
    fitting += expected;
    ASSERT_EQ(fits(pattern, name), expected) << pattern << " " << name;
    const stream_glob_cue cue = stream_glob_look(pattern.c_str());
    if (!expected) continue;
    if (cue.first[1] != 0) {
      ASSERT_EQ(name.substr(0, 2), std::string(cue.first, cue.first + 2)) << pattern;
    }
    if (cue.last[0] != 0 && cue.last[1] != 0) {
      ASSERT_EQ(name.substr(name.size() - 2), std::string(cue.last, cue.last + 2)) << pattern;
    }
    if (cue.inside[0] != 0) {
      const std::string inside(cue.inside, std::find(cue.inside, std::end(cue.inside), 0));
      ASSERT_NE(name.find(inside), std::string::npos) << pattern;
    }
  }
  EXPECT_GT(fitting, 1000);
}

TEST(Glob, TheFirstBytesOfTheLongestThatStandTogetherAreLookedFor) {
  const auto inside = [](const char* pattern) {
    const stream_glob_cue cue = stream_glob_look(pattern);
    return std::string(cue.inside, std::find(cue.inside, std::end(cue.inside), 0));
  };
  EXPECT_EQ(inside("*-bin.[0-9]{6}"), "-bin");
  EXPECT_EQ(inside("*-mj*"), "-mj");
  EXPECT_EQ(inside("a*bc*def*gh?"), "def");
  EXPECT_EQ(inside("?a*"), "a");
  EXPECT_EQ(inside("*[ab]?"), "");
}

TEST(Glob, NoPatternTakesLong) {
  std::string pattern;
  for (int i = 0; i < 60; ++i) pattern += "*a";
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(fits(pattern + "b", std::string(255, 'a')));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
}

}  // namespace
