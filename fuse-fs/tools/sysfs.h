// Reads attributes of /sys and tables of /proc below any root folder.
// Thread safety: pure functions but for reading files. A file that cannot be read is empty.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace streamfs::tools {

// Returns the first line of a file, without blanks at its ends.
std::string text_in(const std::filesystem::path& file);
// Returns the number at a file's begin; 0 if there is none.
uint64_t number_in(const std::filesystem::path& file);
// Returns the names in a folder, sorted.
std::vector<std::string> names_in(const std::filesystem::path& folder);
// Returns whether the text is not empty and has digits only.
bool is_digits(std::string_view text);
// Returns the blank-separated words of a text.
std::vector<std::string> words_of(const std::string& text);

// A line of /proc/self/mountinfo.
struct MountEntry {
  std::string device;  // "259:1", as in an attribute `dev`
  std::string folder, type, source;
  std::string options;  // of the mount, a comma, those of the filesystem
  bool has(const std::string& option) const;
};
std::vector<MountEntry> mounts_of(const std::filesystem::path& root);
// Returns the mount that holds an absolute path; the latest of those with the longest folder.
std::optional<MountEntry> mount_of(const std::vector<MountEntry>& mounts, const std::string& path);

}  // namespace streamfs::tools
