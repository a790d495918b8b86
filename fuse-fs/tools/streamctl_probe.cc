#include "fuse-fs/tools/streamctl_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/table.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/frontend/status_json.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;

struct ProbeArguments {
  std::vector<std::string> devices;
  bool udev = false;
};

class Opened {
 public:
  explicit Opened(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Opened() {
    if (fd_ >= 0) ::close(fd_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  bool ok() const { return fd_ >= 0; }
  // Returns whether all of `out` could be read. A device that is too short holds no streamfs.
  Result<bool> read(uint64_t offset, Bytes out) const {
    while (!out.empty()) {
      const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error{errno};
      if (got == 0) return false;
      out = out.subspan(static_cast<size_t>(got));
      offset += static_cast<uint64_t>(got);
    }
    return true;
  }

 private:
  int fd_;
};

Probed described(const char* type, const meta::Superblock& super) {
  return {type, frontend::uuid_text(super.uuid),
          std::string(super.label, strnlen(super.label, sizeof super.label)), super.version};
}

// Returns a whole superblock of any version, because a probe does not mount the filesystem.
std::optional<meta::Superblock> superblock_in(ConstBytes bytes) {
  meta::Superblock super{};
  std::memcpy(&super, bytes.data(), sizeof super);
  if (super.magic != wire::kSuperMagic) return std::nullopt;
  if (super.checksum != meta::superblock_checksum(super)) return std::nullopt;
  return super;
}

// Describes a META by the newer whole one of its two superblocks.
Result<std::optional<Probed>> probe_meta(const Opened& device, ConstBytes start) {
  std::vector<std::byte> second(kBlockSize);
  SFS_ASSIGN(const bool whole, device.read(meta::kSuperOffset[1], second));
  auto found = superblock_in(start);
  const auto other = whole ? superblock_in(second) : std::nullopt;
  if (other && (!found || other->generation > found->generation)) found = other;
  if (!found) return std::optional<Probed>();
  return std::optional(described("streamfs_meta", *found));
}

std::string blkid_line(const std::string& path, const Probed& found) {
  std::string out = fmt::format("{}:", printable(path));
  if (!found.label.empty()) out += fmt::format(" LABEL=\"{}\"", printable(found.label));
  return out + fmt::format(" UUID=\"{}\" TYPE=\"{}\"", found.uuid, found.type);
}

std::string udev_lines(const Probed& found) {
  const bool data = found.type == "streamfs";
  std::string out = fmt::format("ID_FS_TYPE={}\nID_FS_USAGE={}\nID_FS_VERSION={}\n", found.type,
                                data ? "filesystem" : "other", found.version);
  out += fmt::format("ID_FS_UUID={}\nID_FS_UUID_ENC={}\n", found.uuid, found.uuid);
  if (found.label.empty()) return out;
  const std::string label = udev_escaped(found.label);
  return out + fmt::format("ID_FS_LABEL={}\nID_FS_LABEL_ENC={}\n", label, label);
}

json probed_json(const std::string& path, const Probed& found) {
  return {{"device", path},
          {"type", found.type},
          {"uuid", found.uuid},
          {"label", found.label},
          {"version", found.version}};
}

Result<void> probe(const ProbeArguments& arguments, const Style& style) {
  json all = json::array();
  for (const std::string& path : arguments.devices) {
    auto found = probe_device(path);
    if (!found.ok()) return Error{found.error().code, path};
    if (!*found) continue;
    all.push_back(probed_json(path, **found));
    if (style.json) continue;
    if (arguments.udev) fmt::print("{}", udev_lines(**found));
    if (!arguments.udev) fmt::print("{}\n", blkid_line(path, **found));
  }
  if (style.json) print_json({{"devices", all}});
  if (!all.empty()) return {};
  return Error{ENOMSG, arguments.devices.size() == 1 ? arguments.devices[0] + " is no streamfs"
                                                     : "none of them is a streamfs"};
}

}  // namespace

std::string udev_escaped(const std::string& text) {
  constexpr std::string_view kPlain = "#+-.:=@_";
  std::string out;
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    const bool plain = byte >= 0x80 || (byte >= '0' && byte <= '9') ||
                       (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
                       kPlain.find(each) != std::string_view::npos;
    out += plain ? std::string(1, each) : fmt::format("\\x{:02x}", byte);
  }
  return out;
}

Result<std::optional<Probed>> probe_device(const std::string& path) {
  const Opened device(path);
  if (!device.ok()) return Error{errno, path};
  std::vector<std::byte> start(kBlockSize);
  SFS_ASSIGN(const bool whole, device.read(0, start));
  if (!whole) return std::optional<Probed>();
  const auto label = meta::parse_label(start);
  if (label.ok()) return std::optional(described("streamfs", label->geometry));
  return probe_meta(device, start);
}

void declare_probe(CLI::App& app, CommandSet& commands) {
  const auto arguments = std::make_shared<ProbeArguments>();
  CLI::App* command =
      commands.add(app, "probe",
                   "Print which devices are a streamfs's DATA or META, as blkid(8) does for "
                   "others; exit code 2: none",
                   [arguments](const Style& style) { return probe(*arguments, style); });
  command->add_option("DEVICE", arguments->devices, "Devices or files")->required();
  command->add_flag("--udev", arguments->udev, "Print in the form that udev's rules import");
}

}  // namespace streamfs::tools
