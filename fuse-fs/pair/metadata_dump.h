// All metadata of an unmounted filesystem in one file, and back: to move META to another device, to
// keep a copy while something is tried, to look into.
//
// The file is laid out as the metadata log is on DATA (docs/FORMAT.md): a label, an empty log, one
// snapshot, here with the data checksums. A dump holds good until the next mount: later, blocks
// that it calls somebody's may be another file's, and it is refused.
//
// Thread safety: none is needed; both devices are locked. What a crash leaves: of a dump, a file
// without a label, which is no dump; of a restore, a META without superblocks, which is no META.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "fuse-fs/meta/layout.h"

namespace streamfs::pair {

struct MetadataDump {
  meta::Superblock super{};
  uint64_t bytes = 0;  // of the file
};

// Replays the journal in memory only; META stays as it is. EEXIST: FILE is there already; what
// opening the pair returns; ENOSPC. Nothing is left of FILE when it fails.
Result<MetadataDump> dump_metadata(const std::string& meta_path, const std::string& data,
                                   const std::string& file);

struct RestoreDumpOptions {
  bool force = false;       // whatever META holds now is lost
  std::string mirror_path;  // where META is a second time, if it was kept twice
  bool degraded = false;    // or else it is restored once, and the other copy is older from then on
  double wait_seconds = 10;
};
// META as the dump has it; a META file that is missing is made. EINVAL: not a dump; EIO: a damaged
// one; EMEDIUMTYPE: of another filesystem, or DATA has been mounted since, or META is kept twice
// and one place named (or the other way round); EEXIST: META is not empty; ENOSPC: META is too
// small. META is untouched where it fails with one of these.
Result<MetadataDump> restore_dump(const std::string& file, const std::string& meta_path,
                                  const std::string& data, const RestoreDumpOptions& options);

}  // namespace streamfs::pair
