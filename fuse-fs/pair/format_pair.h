// mkfs: makes an empty filesystem on a META and a DATA.
// Thread safety: one call at a time on a pair. After a crash: there is no new filesystem, because
// DATA's label is written last, after META and its superblocks. The old content of the devices may
// be lost.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/meta/format.h"
#include "pmem/region.h"

namespace streamfs::pair {

// The caller's function is called with each step before it begins, in words for people. The last
// step is "done".
using FormatProgress = std::function<void(std::string_view step)>;

struct FormatPairOptions {
  bool force = false;       // overwrite whatever the devices hold
  bool dry_run = false;     // plan only; a META file that this creates is removed again
  uint64_t meta_size = 0;   // bytes, of a missing or empty META file; 0: meta::first_meta_size()
  std::string mirror_path;  // the second copy of META; empty: META is kept once
  uint64_t mean_file_bytes = meta::kMeanFileBytes;
  bool checksums = true;
  bool meta_log = true;
  // Bytes of the intent log; 0: none. Unset: meta::default_intent_log() if META is persistent or
  // trusted, else none.
  std::optional<uint64_t> intent_log_bytes;
  bool declared_persistent = false;  // as in pmem::OpenOptions
  // The intent log serves although META may lose what was stored. After a power cut META is rebuilt
  // from the log on DATA, without the fsyncs of the last seconds. Requires: meta_log.
  bool trust_memory = false;
  std::string label;
  std::optional<std::array<uint8_t, 16>> uuid;  // unset: random
  double wait_seconds = 10;                     // for another process that holds a device
  FormatProgress progress;
};
struct Formatted {
  meta::Superblock super;
  pmem::MetaClass meta_class{};
  uint64_t meta_size_max = 0;    // bytes that META can grow to by itself
  uint64_t inodes_possible = 0;  // with a META of meta_size_max bytes
  blockdev::DeviceInfo device;
};
// Errors: EEXIST (a device holds something; the context says what), ENOSPC (too small), EMEDIUMTYPE
// (META and its mirror are one file), and those of opening the devices.
Result<Formatted> format_pair(const std::string& meta_path, const std::string& data,
                              const FormatPairOptions& options, Clock& clock);
// Formats devices that are open, whatever they hold. Errors: ENOSPC and those of the devices.
Result<meta::Superblock> format_open_pair(pmem::Region& region, blockdev::Device& device,
                                          const meta::FormatOptions& options, Clock& clock,
                                          const FormatProgress& progress = {});

}  // namespace streamfs::pair
