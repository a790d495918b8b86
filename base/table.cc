#include "base/table.h"

#include <libsmartcols/libsmartcols.h>
#include <locale.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace streamfs {
namespace {

// Makes libsmartcols count the columns of UTF-8 on this thread, whatever the program's locale is.
class Utf8 {
 public:
  Utf8() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_ != nullptr) previous_ = uselocale(locale_);
  }
  ~Utf8() {
    if (locale_ == nullptr) return;
    uselocale(previous_);
    freelocale(locale_);
  }
  Utf8(const Utf8&) = delete;
  Utf8& operator=(const Utf8&) = delete;

 private:
  locale_t locale_, previous_ = nullptr;
};

using Scols = std::unique_ptr<libscols_table, decltype(&scols_unref_table)>;

// libsmartcols fails only for want of memory.
void must(int failed) {
  if (failed != 0) throw std::bad_alloc();
}

std::string padded(const std::string& text, const Table::Column& column) {
  const std::string blanks(column.width_min - std::min(column.width_min, text.size()), ' ');
  return column.align == Table::Align::kRight ? blanks + text : text + blanks;
}

void add_column(libscols_table* table, const Table::Column& column, int flags) {
  if (column.align == Table::Align::kRight) flags |= SCOLS_FL_RIGHT;
  const std::string title = padded(column.title, column);
  must(scols_table_new_column(table, title.c_str(), 0, flags) == nullptr ? 1 : 0);
}

void add_row(libscols_table* table, const std::vector<std::string>& cells) {
  libscols_line* line = scols_table_new_line(table, nullptr);
  must(line == nullptr ? 1 : 0);
  for (size_t at = 0; at < cells.size(); ++at)
    must(scols_line_set_data(line, at, cells[at].c_str()));
}

std::string without_blanks_at_ends(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    out.append(line.substr(0, line.find_last_not_of(' ') + 1)) += '\n';
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return out;
}

}  // namespace

std::string printable(std::string text) {
  for (char& each : text) {
    if (std::iscntrl(static_cast<unsigned char>(each)) != 0) each = '?';
  }
  return text;
}

void Table::row(std::vector<std::string> cells) {
  SFS_ASSERT(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = printable(std::move(cell));
  rows_.push_back(std::move(cells));
}

std::string Table::laid_out() const {
  const Utf8 utf8;
  const Scols table(scols_new_table(), scols_unref_table);
  must(table == nullptr ? 1 : 0);
  must(scols_table_set_column_separator(table.get(), "  "));
  must(scols_table_enable_noencoding(table.get(), 1));  // printable() leaves nothing to encode
  if (width_max_ != 0) {
    must(scols_table_set_termforce(table.get(), SCOLS_TERMFORCE_ALWAYS));
    must(scols_table_set_termwidth(table.get(), width_max_));
  }
  for (const Column& column : columns_)
    add_column(table.get(), column, &column == &columns_.back() ? SCOLS_FL_TRUNC : 0);
  // libsmartcols prints no headings for a table without rows.
  if (rows_.empty()) add_row(table.get(), std::vector<std::string>(columns_.size()));
  for (const auto& cells : rows_) add_row(table.get(), cells);
  char* text = nullptr;
  must(scols_print_table_to_string(table.get(), &text));
  const std::unique_ptr<char, decltype(&std::free)> owner(text, std::free);
  const std::string out = without_blanks_at_ends(text);
  return rows_.empty() ? out.substr(0, out.find('\n') + 1) : out;
}

std::string Table::heading() const {
  const std::string all = laid_out();
  return all.substr(0, all.find('\n') + 1);
}

std::string Table::body() const {
  const std::string all = laid_out();
  return all.substr(all.find('\n') + 1);
}

}  // namespace streamfs
