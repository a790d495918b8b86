// A table of many rows whose columns, order and length the user chooses: --all, --sort, -o, -H.
//
// Thread safety: a Listing belongs to one thread at a time.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/table.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

struct ListingOptions {
  bool all = false;                  // else the first kListed rows
  bool bare = false;                 // every row and nothing else
  std::string sort;                  // a column's name
  std::vector<std::string> columns;  // names, in the order in which they are printed
};

inline constexpr size_t kListed = 20;

class Listing {
 public:
  using Align = Table::Align;
  struct Column {
    const char* name;
    Align align = Align::kRight;
    size_t width_min = 0;
  };
  // Rows are sorted by the numbers of a column's cells, the largest first. Cells without a number
  // come last, in the order of their texts. Rows with equal cells keep their order.
  struct Cell {
    std::string text;
    std::optional<double> number;
  };

  Listing(std::vector<Column> columns, std::string sort);  // `sort`: the default sort column
  // Adds the options to `command`. Requires: `options` outlives it.
  void declare(CLI::App* command, ListingOptions& options) const;

  // Requires: one cell for each column.
  void row(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  // Returns the table. `style.raw` gives every row, as --all does. Lines are cut off at the width
  // of the terminal. Requires: `options` names columns of this listing; declare() checks that.
  std::string text(const ListingOptions& options, const Style& style) const;

 private:
  size_t index_of(const std::string& name) const;
  std::vector<const std::vector<Cell>*> sorted(const std::string& column) const;

  std::vector<Column> columns_;
  std::string sort_;
  std::vector<std::vector<Cell>> rows_;
};

std::string grouped(size_t count);  // "2,538"

}  // namespace streamfs::tools
