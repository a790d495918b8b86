// Makes an fsync durable by the intent log in META (meta/intent_log.h), without a device flush.
//
// An fsync is absorbed if the write cache has all data of the file that no flush has covered. Its
// blocks that are not logged yet are copied into the log and fenced, and then one record commits
// the file.
//
// Thread safety: any thread. Requires: the caller holds no range of the file. After a crash: an
// absorbed file is as the fsync left it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/thread_counters.h"
#include "base/types.h"
#include "fuse-fs/data/core.h"
#include "fuse-fs/data/intent_barrier.h"

namespace streamfs::data {

class Absorber {
 public:
  // `bytes_max`: the most data that one fsync puts into the log.
  Absorber(Core& core, IntentBarrier& barrier, uint64_t bytes_max)
      : core_(core), barrier_(barrier), bytes_max_(bytes_max) {}

  // Returns false if the fsync needs a device flush; the file is then as before. `data_only`: an
  // fdatasync. In a Trying (base/waiting.h) returns would_wait() instead of waiting for the device.
  // Errors: ENOSPC, META has no unit for the extents; those of the intent and metadata logs.
  Result<bool> absorb(InodeId id, InodeState& state, bool data_only);

  // The reasons for which absorb() returns false.
  enum Reason : uint8_t {
    kOnDevice,  // a write went to the device, and no flush has covered it
    kLarge,     // more than bytes_max, or more than one record holds
    kFull,      // the log has no room
    kOld,       // the oldest entry waits for its round for too long
    kReasons,
  };
  struct Counts {
    uint64_t fsyncs = 0;  // with blocks that went into the log
    std::array<uint64_t, kReasons> refused{};
  };
  Counts counts() const;
  // Returns `bytes_max` of the constructor within what the log can take now, in whole blocks.
  uint64_t bytes_max() const {
    return round_down(std::min(bytes_max_, barrier_.log().batch_bytes_max()), kBlockSize);
  }

 private:
  Result<bool> absorb_locked(InodeId id, InodeState& state, bool data_only);
  bool refuse(Reason reason);
  Result<void> acknowledge();
  Result<bool> commit(InodeId id, uint64_t blocks);

  Core& core_;
  IntentBarrier& barrier_;
  const uint64_t bytes_max_;
  enum Counter : uint8_t { kFsyncs = kReasons, kCounters };
  mutable ThreadCounters<kCounters> counters_;
};

}  // namespace streamfs::data
