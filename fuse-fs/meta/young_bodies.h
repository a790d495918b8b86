// Keeps the lines of META that hold bodies younger than the watermark. A record that changes such a
// line must carry a proof (journal.h). Lines are kept by heap unit, because bodies mostly fill
// whole units.
// Thread safety: any thread; each shard has a leaf mutex. After a crash: memory only.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/types.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/layout.h"

namespace streamfs::meta {

class Journal::YoungBodies {
 public:
  void add(uint64_t offset, uint64_t length, TxId tx) {
    const uint64_t end = offset + length;
    for (uint64_t at = round_down(offset, kLineSize); at < end;) {
      const uint64_t unit = at / kUnitSize, unit_end = std::min(end, (unit + 1) * kUnitSize);
      Shard& shard = shard_of(unit);
      const MutexLock lock(shard.mutex);
      Unit& young = shard.young[unit];
      for (; at < unit_end; at += kLineSize) young.lines[line_in_unit(at)] = tx;
      young.youngest = std::max(young.youngest, tx);
      shard.by_age.emplace_back(tx, unit);
    }
  }

  std::optional<TxId> find(uint64_t line) const {
    const uint64_t unit = line / kUnitSize;
    const Shard& shard = shard_of(unit);
    const MutexLock lock(shard.mutex);
    const auto found = shard.young.find(unit);
    if (found == shard.young.end()) return std::nullopt;
    const TxId tx = found->second.lines[line_in_unit(line)];
    return tx > shard.forgotten ? std::optional(tx) : std::nullopt;
  }

  // Forgets the bodies of records up to `tx`. by_age is only nearly sorted, so the memory of a unit
  // behind a younger entry may be freed by a later call only.
  void forget_up_to(TxId tx) {
    for (Shard& shard : shards_) {
      const MutexLock lock(shard.mutex);
      shard.forgotten = tx;
      auto next = shard.by_age.begin();
      for (; next != shard.by_age.end() && next->first <= tx; ++next) {
        const auto found = shard.young.find(next->second);
        if (found != shard.young.end() && found->second.youngest <= tx) shard.young.erase(found);
      }
      shard.by_age.erase(shard.by_age.begin(), next);  // after a checkpoint, nearly all of them
    }
  }

 private:
  struct Unit {
    std::array<TxId, kUnitSize / kLineSize> lines{};  // 0: none
    TxId youngest;
  };
  struct alignas(kLineSize) Shard {  // shares no cache line with another
    mutable Mutex mutex;             // leaf
    TxId forgotten SFS_GUARDED_BY(mutex);
    std::unordered_map<uint64_t, Unit> young SFS_GUARDED_BY(mutex);
    std::vector<std::pair<TxId, uint64_t>> by_age SFS_GUARDED_BY(mutex);
  };
  static size_t line_in_unit(uint64_t offset) { return offset % kUnitSize / kLineSize; }
  Shard& shard_of(uint64_t unit) { return shards_[unit % kShards]; }
  const Shard& shard_of(uint64_t unit) const { return shards_[unit % kShards]; }
  static constexpr size_t kShards = 256;
  std::array<Shard, kShards> shards_;
};

}  // namespace streamfs::meta
