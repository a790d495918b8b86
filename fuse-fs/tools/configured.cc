#include "fuse-fs/tools/configured.h"

#include <mntent.h>
#include <stdio.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "fuse-fs/tools/command_line.h"
#include "fuse-fs/tools/mount_options.h"

namespace streamfs::tools {
namespace {

std::string value_of(std::string_view options, std::string_view key) {
  for (const std::string& option : split_options(options)) {
    if (option.starts_with(key)) return absolute_path(option.substr(key.size()));
  }
  return {};
}

bool same_device(const std::string& one, const std::string& other) {
  std::error_code ignored;
  return absolute_data(one) == absolute_data(other) ||
         std::filesystem::equivalent(one, other, ignored);
}

std::optional<ConfiguredMeta> from_options(std::string_view options) {
  ConfiguredMeta found{value_of(options, "meta="), value_of(options, "mirror=")};
  if (found.meta.empty()) return std::nullopt;
  return found;
}

std::optional<ConfiguredMeta> in_fstab(const std::string& data, const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(setmntent(path.c_str(), "re"), endmntent);
  if (!file) return std::nullopt;
  while (const mntent* each = getmntent(file.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view type = each->mnt_type;
    if (type != "streamfs" && type != "fuse.streamfs") continue;
    if (!same_device(each->mnt_fsname, data)) continue;
    if (auto found = from_options(each->mnt_opts)) return found;
  }
  return std::nullopt;
}

// Returns the value of a KEY=VALUE line, without quotes, as systemd's EnvironmentFile= reads it.
std::string variable(const std::filesystem::path& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != '=') continue;
    std::string value = line.substr(key.size() + 1);
    const bool quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
                        value.front() == value.back();
    return quoted ? value.substr(1, value.size() - 2) : value;
  }
  return {};
}

std::optional<ConfiguredMeta> in_units(const std::string& data, const std::string& folder) {
  std::error_code failed;
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder, failed)) {
    if (each.path().extension() != ".conf") continue;
    const std::string there = variable(each.path(), "DATA"), meta = variable(each.path(), "META");
    if (there.empty() || meta.empty() || !same_device(there, data)) continue;
    return ConfiguredMeta{absolute_path(meta),
                          value_of(variable(each.path(), "OPTIONS"), "mirror=")};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ConfiguredMeta> configured_meta(const std::string& data, const std::string& fstab,
                                              const std::string& folder) {
  if (auto found = in_fstab(data, fstab)) return found;
  return in_units(data, folder);
}

}  // namespace streamfs::tools
