#include "fuse-fs/tools/output.h"

#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/wire/control.h"
#include "fuse-fs/tools/command_line.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;

constexpr std::string_view kGap = "  ";

const json* number_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? &*found : nullptr;
}

// Characters, not bytes: a name may be UTF-8.
size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char each) { return (static_cast<unsigned char>(each) & 0xc0) != 0x80; }));
}

}  // namespace

bool may_colour(int fd) {
  const char* none = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  const char* term = std::getenv("TERM");      // NOLINT(concurrency-mt-unsafe)
  const bool asked_not = none != nullptr && *none != '\0';
  return !asked_not && term != nullptr && std::string_view(term) != "dumb" && isatty(fd) == 1;
}

std::string json_text(json answer, Lines lines) {
  answer["schema"] = wire::kJsonSchema;
  return answer.dump(lines == Lines::kMany ? 2 : -1, ' ', false, json::error_handler_t::replace);
}

void print_json(const json& answer, Lines lines) {
  fmt::print("{}\n", json_text(answer, lines));
}

std::string printable(std::string text) {
  for (char& each : text) {
    if (std::iscntrl(static_cast<unsigned char>(each)) != 0) each = '?';
  }
  return text;
}

std::string bytes_text(uint64_t bytes, const Style& style) {
  return style.raw ? fmt::format("{}", bytes) : human_bytes(bytes);
}

std::string count_text(uint64_t count, const Style& style) {
  constexpr std::array<const char*, 5> kNames = {"", "K", "M", "G", "T"};
  if (style.raw || count < 10'000) return fmt::format("{}", count);
  auto value = static_cast<double>(count);
  size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kNames.size()) value /= 1000, ++unit;
  return fmt::format("{:.1f}{}", value, kNames[unit]);
}

std::string rate_text(double bytes_per_second, const Style& style) {
  return bytes_text(static_cast<uint64_t>(std::llround(std::max(0.0, bytes_per_second))), style);
}

std::string bytes_of(const json& object, const char* key, const Style& style) {
  const json* number = number_at(object, key);
  return number == nullptr ? "unknown" : bytes_text(number->get<uint64_t>(), style);
}

std::string ratio_of(const json& object, const char* key) {
  const json* number = number_at(object, key);
  return number == nullptr ? "unknown" : fmt::format("{:.3f}", number->get<double>());
}

uint64_t count_of(const json& object, const char* key) {
  const json* number = number_at(object, key);
  return number == nullptr ? 0 : number->get<uint64_t>();
}

std::string percent_text(uint64_t part, uint64_t whole) {
  return fmt::format(
      "{:.1f} %",
      whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string inked(std::string_view text, Ink ink, const Style& style) {
  if (!style.colour || ink == Ink::kPlain) return std::string(text);
  const fmt::text_style how = ink == Ink::kTitle  ? fmt::text_style(fmt::emphasis::bold)
                              : ink == Ink::kGood ? fmt::fg(fmt::terminal_color::green)
                                                  : fmt::fg(fmt::terminal_color::red);
  return fmt::format(how, "{}", text);
}

void Table::row(std::vector<std::string> cells) {
  SFS_ASSERT(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = printable(std::move(cell));
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::widths() const {
  std::vector<size_t> out;
  for (size_t at = 0; at < columns_.size(); ++at) {
    size_t width = std::max(columns_[at].least, width_of(columns_[at].title));
    for (const auto& cells : rows_) width = std::max(width, width_of(cells[at]));
    out.push_back(width);
  }
  return out;
}

std::string Table::line(const std::vector<std::string>& cells,
                        const std::vector<size_t>& widths) const {
  std::string out;
  for (size_t at = 0; at < cells.size(); ++at) {
    const std::string space(widths[at] - std::min(widths[at], width_of(cells[at])), ' ');
    if (at != 0) out += kGap;
    out += columns_[at].align == Align::kRight ? space + cells[at] : cells[at] + space;
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

std::string Table::title_text(const Style& style) const {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  return inked(line(titles, widths()), Ink::kTitle, style) + "\n";
}

std::string Table::rows_text() const {
  std::string out;
  const std::vector<size_t> all = widths();
  for (const auto& cells : rows_) out += line(cells, all) + "\n";
  return out;
}

std::string Table::text(const Style& style) const {
  return title_text(style) + rows_text();
}

}  // namespace streamfs::tools
