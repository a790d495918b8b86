// Dumps all metadata of an unmounted filesystem to a file and restores it. A dump moves META to
// another device, is a copy before a risky change, or is read for diagnosis.
//
// The file is laid out as the metadata log is on DATA (docs/FORMAT.md): a label, an empty log, and
// one snapshot, which has the data checksums, too. A dump is valid until the next mount for
// writing. After that, blocks of its files may belong to other files, so restore_dump() refuses it.
//
// Thread safety: any thread; each call locks both devices against other processes. After a crash:
// dump_metadata() leaves a file without a label, which is no dump; restore_dump() leaves a META
// without superblocks.
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

// Writes a dump to a new file. META stays as it is: the journal is replayed in memory. Errors:
// EEXIST (the file exists), ENOSPC, those of open_pair(). After an error the file is removed.
Result<MetadataDump> dump_metadata(const std::string& meta_path, const std::string& data,
                                   const std::string& file);

struct RestoreDumpOptions {
  bool force = false;       // overwrite whatever META holds
  std::string mirror_path;  // the second copy, if META was kept twice
  bool degraded = false;    // restore one of two copies; the other then counts as older
  double wait_seconds = 10;
};
// Writes the dump's metadata to META; creates a META file that is missing. Errors: EINVAL (not a
// dump), EIO (a damaged dump), EMEDIUMTYPE (another filesystem's dump, DATA was mounted since, the
// number of places named is not that of META's copies), EEXIST (META is not empty), ENOSPC (META is
// too small). After each of these META is untouched.
Result<MetadataDump> restore_dump(const std::string& file, const std::string& meta_path,
                                  const std::string& data, const RestoreDumpOptions& options);

}  // namespace streamfs::pair
