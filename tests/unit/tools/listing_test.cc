// Listings: how many rows they print, in which order, and which columns.
#include "fuse-fs/tools/listing.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

namespace streamfs::tools {
namespace {

const Style kPlainStyle{};

Listing numbers(int rows) {
  Listing listing({{"id"}, {"size"}, {"what", Listing::Align::kLeft}}, "size");
  for (int row = 0; row < rows; ++row) {
    listing.row({{std::to_string(row), row},
                 {std::to_string(10 * row) + " B", 10 * row},
                 {std::string(1, static_cast<char>('z' - row % 26)), {}}});
  }
  return listing;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char each : text) each == '\n' ? lines.emplace_back() : lines.back() += each, void();
  lines.pop_back();
  return lines;
}

// Returns the listing that a command line of `words` prints, or the error of the command line.
std::string listed(int rows, std::vector<std::string> words, const Style& style = kPlainStyle) {
  CLI::App app;
  ListingOptions options;
  std::string path;
  const Listing listing = numbers(rows);
  listing.declare(&app, options);
  app.add_option("PATH", path);
  std::ranges::reverse(words);
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return listing.text(options, style);
}

TEST(ListingTest, TheTwentyLargestAreListedAndTheOthersCounted) {
  const auto lines = lines_of(listed(2558, {}));
  ASSERT_EQ(lines.size(), 22U);
  EXPECT_EQ(lines[0], "  id     size  what");
  EXPECT_EQ(lines[1], "2557  25570 B  q");
  EXPECT_EQ(lines[20].substr(0, 4), "2538");
  EXPECT_EQ(lines[21], "… 2,538 more (--all)");
  EXPECT_EQ(lines_of(listed(20, {})).size(), 21U);
}

TEST(ListingTest, EveryRowIsListedForProgramsAndOnRequest) {
  EXPECT_EQ(lines_of(listed(30, {"--all"})).size(), 31U);
  EXPECT_EQ(lines_of(listed(30, {"-H"})).size(), 30U);
  EXPECT_EQ(lines_of(listed(30, {}, Style{.raw = true})).size(), 31U);
}

TEST(ListingTest, ColumnsAreChosenAndOrderedWhateverTheirCase) {
  EXPECT_EQ(listed(2, {"-o", "WHAT,id", "path"}), "what  id\ny      1\nz      0\n");
  EXPECT_EQ(listed(2, {"-H", "--output=size"}), "10 B\n 0 B\n");
}

TEST(ListingTest, TextIsSortedByTheAlphabetAndMissingNumbersComeLast) {
  EXPECT_EQ(listed(3, {"-H", "-o", "what", "--sort", "What"}), "x\ny\nz\n");
  Listing listing({{"a"}}, "a");
  listing.row({{"-", {}}});
  listing.row({{"1", 1}});
  listing.row({{"2", 2}});
  EXPECT_EQ(listing.text({}, kPlainStyle), "a\n2\n1\n-\n");
}

TEST(ListingTest, AnUnknownColumnIsAnErrorThatNamesTheColumns) {
  for (const char* option : {"--sort", "-o"}) {
    const std::string said = listed(1, {option, "sise"});
    EXPECT_NE(said.find("sise"), std::string::npos) << said;
    EXPECT_NE(said.find("id,size,what"), std::string::npos) << said;
  }
}

TEST(ListingTest, ThousandsAreSeparated) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
}

}  // namespace
}  // namespace streamfs::tools
