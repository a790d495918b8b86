#include "fuse-fs/tools/listing.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/table.h"

namespace streamfs::tools {
namespace {

// Returns 0 if standard output is no terminal.
size_t terminal_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool comes_before(const Listing::Cell& a, const Listing::Cell& b) {
  if (a.number && b.number) return *a.number > *b.number;
  if (a.number || b.number) return a.number.has_value();
  return a.text < b.text;
}

}  // namespace

std::string grouped(size_t count) {
  std::string digits = fmt::format("{}", count);
  for (size_t left = digits.size(); left > 3; left -= 3) digits.insert(left - 3, ",");
  return digits;
}

Listing::Listing(std::vector<Column> columns, std::string sort)
    : columns_(std::move(columns)), sort_(std::move(sort)) {}

size_t Listing::index_of(const std::string& name) const {
  const auto found =
      std::ranges::find_if(columns_, [&](const Column& each) { return name == each.name; });
  SFS_ASSERT(found != columns_.end());
  return static_cast<size_t>(found - columns_.begin());
}

void Listing::declare(CLI::App* command, ListingOptions& options) const {
  std::vector<std::string> names;
  for (const Column& column : columns_) names.emplace_back(column.name);
  const CLI::IsMember known(names, CLI::ignore_case);
  command->add_flag(
      "-a,--all", options.all,
      fmt::format("Print every row, not only the first {}, as -H, -p and --json do", kListed));
  command->add_flag("-H,--noheadings", options.bare, "Print every row and nothing else");
  command
      ->add_option(
          "--sort", options.sort,
          fmt::format(
              "Sort by this column: numbers from the largest, texts by the alphabet (default {})",
              sort_))
      ->transform(known);
  command->add_option("-o,--output", options.columns, "Print these columns, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(known);
}

std::vector<const std::vector<Listing::Cell>*> Listing::sorted(const std::string& column) const {
  const size_t key = index_of(column);
  std::vector<const std::vector<Cell>*> out;
  for (const auto& cells : rows_) out.push_back(&cells);
  // Rows with equal cells keep their order, which is that of their addresses.
  std::ranges::sort(out, [key](const auto* a, const auto* b) {
    return comes_before((*a)[key], (*b)[key]) || (!comes_before((*b)[key], (*a)[key]) && a < b);
  });
  return out;
}

std::string Listing::text(const ListingOptions& options, const Style& style) const {
  std::vector<size_t> chosen;
  for (const std::string& name : options.columns) chosen.push_back(index_of(name));
  for (size_t at = 0; options.columns.empty() && at < columns_.size(); ++at) chosen.push_back(at);

  std::vector<Table::Column> columns;
  for (const size_t at : chosen)
    columns.push_back({columns_[at].name, columns_[at].align, columns_[at].width_min});
  Table table(std::move(columns));
  table.set_width_max(terminal_width());

  const auto rows = sorted(options.sort.empty() ? sort_ : options.sort);
  const bool all = options.all || options.bare || style.raw;
  const size_t listed = all ? rows.size() : std::min(rows.size(), kListed);
  for (size_t row = 0; row < listed; ++row) {
    std::vector<std::string> cells;
    for (const size_t at : chosen) cells.push_back((*rows[row])[at].text);
    table.row(std::move(cells));
  }
  if (options.bare) return table.body();
  const size_t left = rows.size() - listed;
  return table_text(table, style) +
         (left == 0 ? "" : fmt::format("… {} more (--all)\n", grouped(left)));
}

}  // namespace streamfs::tools
