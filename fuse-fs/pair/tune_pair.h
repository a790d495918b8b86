// Changes a filesystem that is not mounted: gives META an intent log, or takes it away.
//
//   zeroes in the log's new segments, synced ─► META's superblock, synced ─► DATA's label, its two
//                                                                           copies, a flush each
//
// Thread safety: one call at a time on a pair. After a crash: the superblock is the old or the new
// one. If it is the new one, the next open_pair() that may write completes the label.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/pair/open_pair.h"

namespace streamfs::pair {

struct TuneOptions {
  enum class IntentLog : uint8_t { kKeep, kEnable, kDisable };
  IntentLog intent_log = IntentLog::kKeep;
  // Bytes of the log, rounded down to whole segments. Unset: the room that a disabled log left, or
  // meta::intent_log_share() of META's size, at least meta::kIntentLogLeast.
  std::optional<uint64_t> intent_log_bytes;
  bool declared_persistent = false, trust_memory = false;  // as in FormatPairOptions
  std::string mirror_path;   // the second copy of META; empty: META is kept once
  double wait_seconds = 10;  // for another process that holds a device
};
struct Tuned {
  meta::Superblock before, after;  // equal sizes, features and version: there was nothing to do
};

// Errors, before any change but those of open_pair(): EUCLEAN (not unmounted in an orderly way),
// ENOSPC (META's medium is too small; the message says by how much), EINVAL (META is neither
// persistent nor trusted, or is to be both; the size is less than a segment; a degraded mirror),
// EEXIST (a log of another size is there), EBUSY (a log to be disabled has entries that count), and
// those of open_pair().
Result<Tuned> tune_pair(const std::string& meta_path, const std::string& data,
                        const TuneOptions& options);
// Does the same with a pair that is open and not attached. `pair` then has the new superblock and
// label.
Result<Tuned> tune_open_pair(OpenPair& pair, const TuneOptions& options);

}  // namespace streamfs::pair
