#include "fuse-fs/tools/mount_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/frontend/transport.h"
#include "fuse-fs/meta/intent_log.h"
#include "fuse-fs/placement/placement.h"
#include "fuse-fs/tools/command_line.h"

namespace streamfs::tools {
namespace {

constexpr std::array<std::string_view, 29> kForOthers = {
    "defaults",    "auto",          "noauto",   "user",       "nouser",   "users",
    "nousers",     "owner",         "noowner",  "group",      "nogroup",  "_netdev",
    "_rnetdev",    "nofail",        "silent",   "loud",       "relatime", "norelatime",
    "strictatime", "nostrictatime", "lazytime", "nolazytime", "iversion", "noiversion",
    "atime",       "diratime",      "mand",     "nomand",     "bg"};
constexpr std::array<std::string_view, 10> kGeneric = {
    "suid", "nosuid", "dev", "nodev", "exec", "noexec", "sync", "async", "noatime", "nodiratime"};

template <typename List>
bool contains(const List& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

Error needs_value(std::string_view name, std::string_view what) {
  return Error{EINVAL, fmt::format("option {} needs {}: -o {}=…", name, what, name)};
}

Result<void> parse_number(std::string_view name, const std::string& value, const char* what,
                          uint32_t& out) {
  const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (failed == std::errc{} && end == value.data() + value.size() && !value.empty()) return {};
  return needs_value(name, what);
}

Result<void> set_placement(MountCommand& command, const std::string& value) {
  SFS_ASSIGN(command.filesystem.placement, placement::parse_mode(value));
  return {};
}

// Without a value the option means the model's own latencies.
Result<void> set_real_time(MountCommand& command, const std::string& value) {
  double factor = 1;
  const char* end = value.data() + value.size();
  const auto [stop, failed] = std::from_chars(value.data(), end, factor);
  const bool number = failed == std::errc{} && stop == end && factor >= 1e-3 && factor <= 1e6;
  if (!value.empty() && !number)
    return Error{EINVAL,
                 "option real_time: a factor from 0.001 to 1000000, or none: -o real_time=2"};
  command.filesystem.real_time = factor;
  return {};
}

Result<void> set_idle_work(MountCommand& command, const std::string& value) {
  using data::IdleWorkWhen;
  const std::map<std::string, IdleWorkWhen, std::less<>> whens = {{"auto", IdleWorkWhen::kAuto},
                                                                  {"always", IdleWorkWhen::kAlways},
                                                                  {"off", IdleWorkWhen::kOff}};
  const auto found = whens.find(value);
  if (found == whens.end()) return needs_value("idle_work", "auto, always or off");
  command.filesystem.idle_work = found->second;
  return {};
}

// "none" means built-in profiles only.
Result<void> set_profiles(MountCommand& command, const std::string& value) {
  if (value.empty()) return needs_value("profiles", "a folder or none");
  command.filesystem.profiles_folder = value == "none" ? "" : absolute_path(value);
  return {};
}

Result<void> set_model(MountCommand& command, const std::string& value) {
  if (value.empty()) return needs_value("model", "a file, a folder or none");
  command.filesystem.model_path = value == "none" ? "" : absolute_path(value);
  return {};
}

Result<void> set_path(std::string_view name, const std::string& value, std::string& out) {
  if (value.empty()) return needs_value(name, "a path");
  out = absolute_path(value);
  return {};
}

using Setter = std::function<Result<void>(MountCommand&, const std::string&)>;

Setter flag(bool data::MountOptions::* member, bool value) {
  return [=](MountCommand& command, const std::string&) -> Result<void> {
    command.filesystem.*member = value;
    return {};
  };
}

Setter flag(bool MountCommand::* member, bool value) {
  return [=](MountCommand& command, const std::string&) -> Result<void> {
    command.*member = value;
    return {};
  };
}

Setter number(std::string_view name, const char* what, uint32_t data::MountOptions::* member) {
  return [=](MountCommand& command, const std::string& value) {
    return parse_number(name, value, what, command.filesystem.*member);
  };
}

Setter transport(frontend::Transport way) {
  return [way](MountCommand& command, const std::string&) -> Result<void> {
    command.transport = way;
    return {};
  };
}

Result<void> set_transport(MountCommand& command, const std::string& value) {
  using frontend::Transport;
  const std::map<std::string, Transport, std::less<>> ways = {
      {"auto", Transport::kAuto}, {"io_uring", Transport::kIoUring}, {"dev", Transport::kDev}};
  const auto found = ways.find(value);
  if (found == ways.end()) return needs_value("transport", "auto, io_uring or dev");
  command.transport = found->second;
  return {};
}

Result<void> set_write_behind(MountCommand& command, const std::string& value) {
  constexpr uint32_t kMost = 4096;
  SFS_TRY(
      parse_number("write_behind_mib", value, "mebibytes", command.filesystem.write_behind_mib));
  if (command.filesystem.write_behind_mib <= kMost) return {};
  return Error{EINVAL, "write_behind_mib is at most 4096"};
}

Result<void> set_meta_growth(MountCommand& command, const std::string& value) {
  if (value != "auto" && value != "off")
    return Error{EINVAL, "meta_growth is auto or off, not \"" + value + "\""};
  command.filesystem.meta_growth = value == "auto";
  return {};
}

Result<void> set_meta_size_max(MountCommand& command, const std::string& value) {
  SFS_ASSIGN(command.filesystem.meta_size_max, parse_size(value));
  if (command.filesystem.meta_size_max != 0) return {};
  return Error{EINVAL, "meta_size_max is 0"};
}

Result<void> set_intent_log_max(MountCommand& command, const std::string& value) {
  constexpr uint64_t kMost = meta::IntentLog::kBatchBytesMax;
  SFS_ASSIGN(const uint64_t bytes, parse_size(value));
  if (bytes > kMost)
    return Error{EINVAL, fmt::format("intent_log_max is at most {}K, not {}", kMost / 1024, value)};
  if (bytes != 0 && bytes < kBlockSize)
    return Error{EINVAL,
                 "intent_log_max is 0 (the log takes no data) or at least 4K, not " + value};
  command.filesystem.intent_log_max = bytes;
  return {};
}

// The setters of streamfs's own options.
const std::map<std::string, Setter, std::less<>>& setters() {
  using data::MountOptions;
  static const std::map<std::string, Setter, std::less<>> all = {
      {"meta", [](MountCommand& c, const std::string& v) { return set_path("meta", v, c.meta); }},
      {"mirror",
       [](MountCommand& c, const std::string& v) {
         return set_path("mirror", v, c.filesystem.mirror_path);
       }},
      {"degraded", flag(&MountOptions::degraded, true)},
      {"trace", [](MountCommand& c,
                   const std::string& v) { return set_path("trace", v, c.filesystem.trace_path); }},
      {"placement", set_placement},
      {"model", set_model},
      {"idle_work", set_idle_work},
      {"profile",
       [](MountCommand& c, const std::string& v) -> Result<void> {
         c.filesystem.profile = v;
         return {};
       }},
      {"profiles", set_profiles},
      {"real_time", set_real_time},
      {"ro", flag(&MountOptions::read_only, true)},
      {"rw", flag(&MountOptions::read_only, false)},
      {"dirsync", flag(&MountOptions::dirsync, true)},
      {"discard", flag(&MountOptions::discard, true)},
      {"plp", flag(&MountOptions::plp, true)},
      {"nodiscard", flag(&MountOptions::discard, false)},
      {"verify", flag(&MountOptions::verify_checksums, true)},
      {"noverify", flag(&MountOptions::verify_checksums, false)},
      {"allow_other", flag(&MountCommand::allow_other, true)},
      {"transport", set_transport},
      {"io_uring", transport(frontend::Transport::kPreferred)},
      {"noio_uring", transport(frontend::Transport::kDev)},
      {"enable_uring", flag(&MountCommand::enable_uring, true)},
      {"nonempty", flag(&MountCommand::nonempty, true)},
      {"direct_io", flag(&MountCommand::direct_io, true)},
      {"epoch_idle_ms", number("epoch_idle_ms", "milliseconds", &MountOptions::epoch_idle_ms)},
      {"epoch_age_ms", number("epoch_age_ms", "milliseconds", &MountOptions::epoch_age_ms)},
      {"cache_mib", number("cache_mib", "mebibytes", &MountOptions::cache_mib)},
      {"write_behind_mib", set_write_behind},
      {"meta_growth", set_meta_growth},
      {"meta_size_max", set_meta_size_max},
      {"intent_log_max", set_intent_log_max},
      {"request_timeout",
       [](MountCommand& c, const std::string& v) {
         return parse_number("request_timeout", v, "seconds", c.request_timeout_s);
       }},
      {"default_permissions", [](MountCommand&, const std::string&) -> Result<void> { return {}; }},
  };
  return all;
}

}  // namespace

std::vector<std::string> split_options(std::string_view text) {
  std::vector<std::string> out(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      out.back().push_back(text[++i]);
    } else if (text[i] == ',') {
      out.emplace_back();
    } else {
      out.back().push_back(text[i]);
    }
  }
  std::erase(out, "");
  return out;
}

bool is_for_others(std::string_view option) {
  return option.starts_with("x-") || option.starts_with("X-") || option.starts_with("comment=") ||
         option.starts_with("uhelper=") || option.starts_with("helper=") ||
         contains(kForOthers, option);
}

Result<void> apply_option(MountCommand& command, const std::string& option) {
  const size_t equals = option.find('=');
  const std::string name = option.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
  if (is_for_others(option)) return {};
  if (name == "ro" || name == "rw" || contains(kGeneric, option)) command.generic.push_back(option);
  if (contains(kGeneric, option)) return {};
  const auto setter = setters().find(name);
  if (setter == setters().end()) {
    return Error{EINVAL, fmt::format("unknown option \"{}\"; streamfs --help lists them", name)};
  }
  return setter->second(command, value);
}

}  // namespace streamfs::tools
