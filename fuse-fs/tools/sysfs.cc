#include "fuse-fs/tools/sysfs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace streamfs::tools {
namespace {

// Replaces the escapes of mountinfo: \040 is a blank.
std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 3 < text.size() &&
                        std::all_of(text.begin() + static_cast<ptrdiff_t>(i) + 1,
                                    text.begin() + static_cast<ptrdiff_t>(i) + 4,
                                    [](char c) { return c >= '0' && c <= '7'; });
    if (!escape) {
      out += text[i];
      continue;
    }
    out +=
        static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
    i += 3;
  }
  return out;
}

// Reads a line of mountinfo: id parent device root folder options [tags…] - type source options.
std::optional<MountEntry> parsed(const std::string& line) {
  constexpr size_t kDevice = 2, kFolder = 4, kOptions = 5, kTags = 6, kAfterDash = 3;
  const std::vector<std::string> words = words_of(line);
  if (words.size() <= kTags) return std::nullopt;
  const auto dash = std::find(words.begin() + kTags, words.end(), "-");
  if (std::distance(dash, words.end()) <= static_cast<ptrdiff_t>(kAfterDash)) return std::nullopt;
  return MountEntry{words[kDevice], unescaped(words[kFolder]), dash[1], unescaped(dash[2]),
                    words[kOptions] + "," + dash[3]};
}

bool holds(const std::string& folder, const std::string& path) {
  if (folder == "/" || folder == path) return true;
  return path.starts_with(folder) && path[folder.size()] == '/';
}

}  // namespace

std::string text_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  const size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\n") + 1 - begin);
}

uint64_t number_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  uint64_t value = 0;
  in >> value;
  return value;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& each : std::filesystem::directory_iterator(folder, failed))
    names.push_back(each.path().filename());
  std::ranges::sort(names);
  return names;
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

bool MountEntry::has(const std::string& option) const {
  return ("," + options + ",").find("," + option + ",") != std::string::npos;
}

std::vector<MountEntry> mounts_of(const std::filesystem::path& root) {
  std::vector<MountEntry> mounts;
  std::ifstream in(root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);)
    if (auto entry = parsed(line)) mounts.push_back(std::move(*entry));
  return mounts;
}

std::optional<MountEntry> mount_of(const std::vector<MountEntry>& mounts, const std::string& path) {
  std::optional<MountEntry> best;
  for (const MountEntry& each : mounts)
    if (holds(each.folder, path) && (!best || each.folder.size() >= best->folder.size()))
      best = each;
  return best;
}

}  // namespace streamfs::tools
