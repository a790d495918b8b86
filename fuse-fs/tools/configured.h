// Where the administrator wrote down what belongs to a data device: /etc/fstab, and the files that
// streamfs@.service reads.
// Thread safety: reads files only. Crash: nothing is kept.
#pragma once

#include <optional>
#include <string>

namespace streamfs::tools {

struct ConfiguredMeta {
  std::string meta, mirror;  // the latter may be empty
};

// fsck(8) names the data device only. The first entry for it that says meta=; none otherwise.
std::optional<ConfiguredMeta> configured_meta(const std::string& data,
                                              const std::string& fstab = "/etc/fstab",
                                              const std::string& folder = "/etc/streamfs");

}  // namespace streamfs::tools
