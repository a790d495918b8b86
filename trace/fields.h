// Splits lines of text into fields and parses numbers. Thread safety: pure functions.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>
#include <vector>

namespace streamfs::trace {

// Returns whether all of `text` is a number that fits. `how`: std::from_chars's base or format.
template <typename T, typename... How>
bool parse_number(std::string_view text, T& value, How... how) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, how...);
  return error == std::errc() && end == text.data() + text.size();
}

// Removes spaces and tabs at both ends.
inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text;
}

// Calls visit(place, field) for each comma-separated field, trimmed; places count from 0.
template <typename Visit>
void for_each_field(std::string_view line, Visit visit) {
  for (int place = 0;; ++place) {
    const size_t comma = line.find(',');
    visit(place, trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

inline std::vector<std::string_view> split_commas(std::string_view line) {
  std::vector<std::string_view> fields;
  for_each_field(line, [&](int, std::string_view field) { fields.push_back(field); });
  return fields;
}

inline std::vector<std::string_view> split_spaces(std::string_view line) {
  std::vector<std::string_view> words;
  while (!(line = trimmed(line)).empty()) {
    words.push_back(line.substr(0, line.find_first_of(" \t")));
    line.remove_prefix(words.back().size());
  }
  return words;
}

}  // namespace streamfs::trace
