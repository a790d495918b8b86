// Makes a filesystem: plans its geometry for the sizes of META and DATA, and writes it empty.
// Thread safety: pure functions. format() requires that nothing else uses META.
// After a crash: the superblocks are written last, so an unfinished format leaves no filesystem.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::meta {

inline constexpr uint64_t kMeanFileBytes = 16 * 1024;  // as mke2fs plans its inodes

struct FormatOptions {
  uint64_t data_blocks = 0;
  uint64_t mean_file_bytes = kMeanFileBytes;
  bool checksums = true;
  bool meta_log = false;
  bool mirror = false;                                     // META is kept twice
  bool declared_persistent = false, trust_memory = false;  // kFeatureDeclared, kFeatureTrustMemory
  uint64_t intent_log_bytes = 0;  // rounded down to whole segments of kRingSize; 0: none
  std::string label;
  std::array<uint8_t, 16> uuid{};
  std::string data_identity;
  uint64_t created_seconds = 0;
  uint32_t random_seed = 0;
  uint32_t version = kFormatVersion;
};
// Return the bytes of a META with one file for each mean_file_bytes of DATA. A META file grows to
// this size.
uint64_t meta_size_max(const FormatOptions& options);
uint64_t meta_size_max(const Superblock& super);
// Returns the bytes that a META file begins with.
uint64_t first_meta_size(const FormatOptions& options);
// Returns a sixteenth of these bytes of META, in whole segments of the intent log.
uint64_t intent_log_share(uint64_t meta_size);
inline constexpr uint64_t kIntentLogLeast = 8 * kMiB;
// Returns the bytes of the intent log that a persistent META of this size has by default:
// intent_log_share(), at least kIntentLogLeast. 0: META is too small, because the log would take
// more than a quarter of it and leave less than first_meta_size().
uint64_t default_intent_log(const FormatOptions& options, uint64_t meta_size);
// Return how many files fit: an empty filesystem whose META has so many bytes, or so many free heap
// units. The estimate has one or two extents and a name of up to 48 bytes for each file, and 8
// entries for each directory.
uint64_t inodes_possible(const Superblock& super, uint64_t meta_size);
uint64_t files_fitting(uint64_t heap_units);
// Returns the geometry of a META of this size. Errors: ENOSPC, META or DATA is too small; the
// message says how much is needed.
Result<Superblock> plan_format(uint64_t meta_size, pmem::MetaClass meta_class,
                               const FormatOptions& options);
// Zeroes META and writes an empty filesystem, the superblocks last. The caller syncs the region.
// Errors: EINVAL, the geometry is impossible.
Result<void> format(pmem::Region& region, const Superblock& super, Timestamp now);

}  // namespace streamfs::meta
