#include "fuse-fs/placement/context.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "base/checksum.h"
#include "fuse-fs/placement/placement.h"

namespace streamfs::placement {
namespace {

constexpr std::string_view kPrefix = "ctx:";
constexpr size_t kHashSize = 9;  // '~' and 8 hex digits
constexpr size_t kExtensionMax = 16;
constexpr std::array<std::string_view, 16> kCopiers{
    "cp",  "mv",  "rsync", "tar", "bsdtar",      "cpio",     "unzip",    "7z",
    "7za", "7zz", "unrar", "scp", "sftp-server", "dpkg-deb", "rpm2cpio", "rclone"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// Replaces separators and bytes that no terminal should get by '_'.
std::string clean(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c == ':' || c == '~' || static_cast<unsigned char>(c) <= ' ' || c == 0x7f) c = '_';
  }
  return out;
}

}  // namespace

bool is_copier(std::string_view comm) {
  return std::ranges::find(kCopiers, comm) != kCopiers.end();
}

std::string fold_comm(std::string_view comm) {
  while (!comm.empty() && is_digit(comm.back())) {
    while (!comm.empty() && is_digit(comm.back())) comm.remove_suffix(1);
    if (!comm.empty() && comm.back() == '/') comm.remove_suffix(1);
  }
  return clean(comm);
}

std::string fold_extension(std::string_view name) {
  if (is_number(name)) return "#";
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  const std::string_view ext = name.substr(dot + 1);
  if (ext.size() > kExtensionMax) return {};
  return is_number(ext) ? "#" : clean(ext);
}

std::string fold_directory(std::string_view directory) {
  std::string out;
  for (const char c : clean(directory)) {
    if (!is_digit(c)) {
      out.push_back(c);
    } else if (out.empty() || out.back() != '#') {
      out.push_back('#');
    }
  }
  return out;
}

std::string context_name(const Context& context) {
  std::string whole(kPrefix);
  whole += context.comm + ":" + context.ext + ":" + context.dir;
  if (whole.size() <= kNameMax) return whole;
  char hash[kHashSize + 1];
  std::snprintf(hash, sizeof hash, "~%08x", crc32c(std::as_bytes(std::span(whole))));
  return whole.substr(0, kNameMax - kHashSize) + hash;
}

Context parse_context_name(std::string_view name) {
  Context out;
  if (!name.starts_with(kPrefix)) return out;
  name.remove_prefix(kPrefix.size());
  name = name.substr(0, name.rfind('~'));
  const size_t comm_end = std::min(name.find(':'), name.size());
  out.comm = name.substr(0, comm_end);
  name.remove_prefix(std::min(comm_end + 1, name.size()));
  const size_t ext_end = name.find(':');
  if (ext_end != std::string_view::npos) {
    out.ext = name.substr(0, ext_end);
    name.remove_prefix(ext_end + 1);
  }
  out.dir = name;
  return out;
}

Context context_of(std::string_view comm, std::string_view name, std::string_view directory) {
  if (is_copier(comm)) return {std::string(kCopier), {}, {}};
  return {fold_comm(comm), fold_extension(name), fold_directory(directory)};
}

}  // namespace streamfs::placement
