// What programs print: JSON with a schema version, aligned tables, figures for people or raw ones.
// Thread safety: pure functions but for stdout.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace streamfs::tools {

struct Style {
  bool json = false;
  bool raw = false;     // -p: bytes and counts as plain numbers
  bool colour = false;  // on a terminal that has them, unless NO_COLOR is set
};
// Whether what this descriptor shows may be coloured.
bool may_colour(int fd);

// The answer with "schema" (wire::kJsonSchema) put into it; on one line if it is one of many.
enum class Lines : unsigned char { kOne, kMany };
std::string json_text(nlohmann::json answer, Lines lines = Lines::kMany);
void print_json(const nlohmann::json& answer, Lines lines = Lines::kMany);

// One line of a table stays one: what cannot be printed becomes "?".
std::string printable(std::string text);

std::string bytes_text(uint64_t bytes, const Style& style);  // "1.5 GiB", or 1610612736
std::string count_text(uint64_t count, const Style& style);  // "12.3K" from 10,000 on, or 12345
// A rate, which need not be a whole number.
std::string rate_text(double bytes_per_second, const Style& style);
// What a device does not tell (null, or not there) is "unknown"; alone in a column, "-".
std::string bytes_of(const nlohmann::json& object, const char* key, const Style& style);
std::string ratio_of(const nlohmann::json& object, const char* key);
uint64_t count_of(const nlohmann::json& object, const char* key);
std::string percent_text(uint64_t part, uint64_t whole);

enum class Ink : unsigned char { kPlain, kTitle, kGood, kBad };
std::string inked(std::string_view text, Ink ink, const Style& style);

// Columns as wide as their widest cell, two spaces apart; nothing behind the last one.
class Table {
 public:
  enum class Align : unsigned char { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kRight;
    size_t least = 0;  // width, so that tables printed row by row stay in line
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void row(std::vector<std::string> cells);  // as many as columns
  size_t rows() const { return rows_.size(); }
  std::string text(const Style& style) const;  // title and all rows
  std::string rows_text() const;               // without the title
  std::string title_text(const Style& style) const;

 private:
  std::vector<size_t> widths() const;
  std::string line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace streamfs::tools
