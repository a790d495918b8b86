// Dumps all metadata of an unmounted filesystem to a file and restores it: to move META to another
// device, to have a copy before a risky change, or to look into it.
//
// The file is laid out as the metadata log is on DATA (docs/FORMAT.md): a label, an empty log, one
// snapshot, here with the data checksums. A dump is valid until the next mount for writing. After
// that, blocks of its files may belong to other files, so restore_dump() refuses it.
//
// Thread safety: any thread; both devices are locked. After a crash: dump_metadata() leaves a file
// without a label, which is no dump; restore_dump() leaves a META without superblocks.
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
