// Finds the META of a data device in the administrator's files: /etc/fstab, and the files that
// streamfs@.service reads.
// Thread safety: reads files only.
#pragma once

#include <optional>
#include <string>

namespace streamfs::tools {

struct ConfiguredMeta {
  std::string meta, mirror;  // the latter may be empty
};

// Returns the first entry for the data device that names its META, from fstab or else from a .conf
// file below `folder`; nullopt: there is none. The paths are absolute. fsck(8) needs it, because it
// names the data device only.
std::optional<ConfiguredMeta> configured_meta(const std::string& data,
                                              const std::string& fstab = "/etc/fstab",
                                              const std::string& folder = "/etc/streamfs");

}  // namespace streamfs::tools
