// Text tables, laid out by libsmartcols as those of lsblk(8) and findmnt(8) are.
//
// Thread safety: a Table belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace streamfs {

// Replaces control characters by "?", so that a row stays one line and a terminal stays as it is.
std::string printable(std::string text);

class Table {
 public:
  enum class Align : unsigned char { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kRight;
    size_t width_min = 0;  // keeps tables aligned that are printed one row at a time
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Adds a row; each cell is made printable(). Requires: one cell for each column.
  void row(std::vector<std::string> cells);
  size_t rows() const { return rows_.size(); }

  // Truncates the last column if a line is wider than this many characters; 0: never.
  void set_width_max(size_t characters) { width_max_ = characters; }

  // Each line ends with a newline and has no trailing blanks.
  std::string heading() const;
  std::string body() const;
  std::string text() const { return heading() + body(); }

 private:
  std::string laid_out() const;

  std::vector<Column> columns_;
  size_t width_max_ = 0;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace streamfs
