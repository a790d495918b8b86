// Tables: alignment of UTF-8, widths, headings.
#include "base/table.h"

#include <gtest/gtest.h>

namespace streamfs {
namespace {

using Align = Table::Align;

TEST(TableTest, ColumnsAreAlignedAlsoUnderUtf8AndControlCharacters) {
  Table table({{"n"}, {"name", Align::kLeft}, {"x"}});
  table.row({"1", "für", "22"});
  table.row({"123", "a\nb\x1b[31m", "3"});
  EXPECT_EQ(table.text(),
            "  n  name       x\n"
            "  1  für       22\n"
            "123  a?b?[31m   3\n");
}

TEST(TableTest, ColumnsKeepTheirLeastWidthRowByRow) {
  Table table({{"a", Align::kRight, 5}, {"b", Align::kLeft, 4}});
  EXPECT_EQ(table.heading(), "    a  b\n");
  EXPECT_EQ(table.body(), "");
  table.row({"1", ""});
  EXPECT_EQ(table.body(), "    1\n");
}

TEST(TableTest, TheLastColumnIsCutAtTheWidth) {
  Table table({{"n"}, {"name", Align::kLeft}});
  table.row({"1", "a long name"});
  table.set_width_max(9);
  EXPECT_EQ(table.body(), "1  a long\n");
  table.set_width_max(80);
  EXPECT_EQ(table.body(), "1  a long name\n");
}

}  // namespace
}  // namespace streamfs
