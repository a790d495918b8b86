// Prints JSON with a schema version, tables, and figures: rounded for people, or raw.
// Thread safety: pure functions but for stdout.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/table.h"

namespace streamfs::tools {

struct Style {
  bool json = false;
  bool raw = false;     // -p: bytes and counts as plain numbers
  bool colour = false;  // on a terminal that has them, unless NO_COLOR is set
};
// Returns whether output to this descriptor may be coloured.
bool may_colour(int fd);

// Adds "schema" (wire::kJsonSchema) to an answer and formats it; kOne: on one line, for an answer
// that is one of many.
enum class Lines : unsigned char { kOne, kMany };
std::string json_text(nlohmann::json answer, Lines lines = Lines::kMany);
void print_json(const nlohmann::json& answer, Lines lines = Lines::kMany);

std::string bytes_text(uint64_t bytes, const Style& style);  // "1.5 GiB", or 1610612736
std::string count_text(uint64_t count, const Style& style);  // "12.3K" from 10,000 on, or 12345
// Formats a rate, which need not be a whole number.
std::string rate_text(double bytes_per_second, const Style& style);
// Return object[key] as text; "unknown" if it is null or absent, because the device does not report
// it.
std::string bytes_of(const nlohmann::json& object, const char* key, const Style& style);
std::string ratio_of(const nlohmann::json& object, const char* key);
// Returns object[key]; 0 if it is null or absent.
uint64_t count_of(const nlohmann::json& object, const char* key);
std::string percent_text(uint64_t part, uint64_t whole);

// Returns a line for each way in which META's memory was declared: these features of a superblock.
std::string trust_lines(uint32_t features, std::string_view indent);

enum class Ink : unsigned char { kPlain, kTitle, kGood, kBad };
std::string inked(std::string_view text, Ink ink, const Style& style);

std::string heading_text(const Table& table, const Style& style);  // bold
std::string table_text(const Table& table, const Style& style);    // the heading and all rows

}  // namespace streamfs::tools
