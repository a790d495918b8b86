#include "fuse-fs/tools/output.h"

#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/human_bytes.h"
#include "base/table.h"
#include "base/wire/control.h"
#include "fuse-fs/meta/layout.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;

const json* number_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? &*found : nullptr;
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

std::string trust_lines(uint32_t features, std::string_view indent) {
  std::string lines;
  if ((features & meta::kFeatureDeclared) != 0)
    lines += fmt::format("{}declared persistent: it is believed after a power cut\n", indent);
  if ((features & meta::kFeatureTrustMemory) != 0)
    lines += fmt::format(
        "{}trusted: a power cut takes the fsyncs of the last 5 seconds, in order\n", indent);
  return lines;
}

std::string inked(std::string_view text, Ink ink, const Style& style) {
  if (!style.colour || ink == Ink::kPlain) return std::string(text);
  const fmt::text_style how = ink == Ink::kTitle  ? fmt::text_style(fmt::emphasis::bold)
                              : ink == Ink::kGood ? fmt::fg(fmt::terminal_color::green)
                                                  : fmt::fg(fmt::terminal_color::red);
  return fmt::format(how, "{}", text);
}

std::string heading_text(const Table& table, const Style& style) {
  std::string heading = table.heading();
  heading.pop_back();  // the newline stays plain
  return inked(heading, Ink::kTitle, style) + "\n";
}

std::string table_text(const Table& table, const Style& style) {
  return heading_text(table, style) + table.body();
}

}  // namespace streamfs::tools
