// Bytes as a document prints them.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace streamfs::nvme {

// Two digits for each byte, blanks between them.
inline std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte each : bytes)
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", std::to_integer<unsigned>(each));
  return text;
}

inline std::string hex(std::span<const std::byte> bytes, size_t from, size_t size) {
  return hex(bytes.subspan(from, size));
}

}  // namespace streamfs::nvme
