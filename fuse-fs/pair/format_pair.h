// mkfs: an empty filesystem on a META and a DATA.
// Thread safety: one call at a time on a pair. What a crash leaves: no filesystem (DATA's label is
// written last, after META and its superblocks).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/meta/engine.h"
#include "pmem/region.h"

namespace streamfs::pair {

// Told what is done next, for people; the last is "done".
using FormatProgress = std::function<void(std::string_view step)>;

struct FormatPairOptions {
  bool force = false;       // whatever is on the devices now is lost
  bool dry_run = false;     // say what would be made; nothing is written
  uint64_t meta_size = 0;   // of a META file that does not exist yet; 0 = meta::first_meta_size()
  std::string mirror_path;  // META a second time
  uint64_t mean_file_bytes = meta::kMeanFileBytes;
  bool checksums = true;
  bool meta_log = true;
  std::string label;
  std::optional<std::array<uint8_t, 16>> uuid;  // unset: random
  double wait_seconds = 10;
  FormatProgress progress;
};
struct Formatted {
  meta::Superblock super;
  pmem::MetaClass meta_class{};
  uint64_t meta_size_max = 0;    // bytes that META grows to by itself
  uint64_t inodes_possible = 0;  // with a META so large
  blockdev::DeviceInfo device;
};
// Errors: EEXIST (something is there; the sentence says what), ENOSPC (too small), and those of
// opening the two.
Result<Formatted> format_pair(const std::string& meta_path, const std::string& data,
                              const FormatPairOptions& options, Clock& clock);
// The same on devices already open, without a look at what they hold.
Result<meta::Superblock> format_open_pair(pmem::Region& region, blockdev::Device& device,
                                          const meta::FormatOptions& options, Clock& clock,
                                          const FormatProgress& progress = {});

}  // namespace streamfs::pair
