// Which lines hold bodies younger than the watermark: a record that changes one must prove it.
// Thread safety: any thread; a leaf mutex per shard. Crash: memory only.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "base/types.h"
#include "fuse-fs/meta/journal.h"

namespace streamfs::meta {

class Journal::YoungBodies {
 public:
  void add(uint64_t offset, uint64_t length, TxId tx) {
    for (uint64_t line = round_down(offset, kLineSize); line < offset + length; line += kLineSize) {
      Shard& shard = shard_of(line);
      const MutexLock lock(shard.mutex);
      shard.young[line] = tx;
      shard.by_age.emplace_back(tx, line);
    }
  }

  std::optional<TxId> find(uint64_t line) const {
    const Shard& shard = shard_of(line);
    const MutexLock lock(shard.mutex);
    const auto found = shard.young.find(line);
    if (found == shard.young.end()) return std::nullopt;
    return found->second;
  }

  // by_age is nearly sorted: a line left behind by a younger neighbour goes at the next call.
  void forget_up_to(TxId tx) {
    for (Shard& shard : shards_) {
      const MutexLock lock(shard.mutex);
      while (!shard.by_age.empty() && shard.by_age.front().first <= tx) {
        const auto found = shard.young.find(shard.by_age.front().second);
        if (found != shard.young.end() && found->second <= tx) shard.young.erase(found);
        shard.by_age.pop_front();
      }
    }
  }

 private:
  struct alignas(kLineSize) Shard {  // neighbours are others'
    mutable Mutex mutex;             // leaf
    std::unordered_map<uint64_t, TxId> young SFS_GUARDED_BY(mutex);
    std::deque<std::pair<TxId, uint64_t>> by_age SFS_GUARDED_BY(mutex);
  };
  Shard& shard_of(uint64_t line) { return shards_[line / kLineSize % kShards]; }
  const Shard& shard_of(uint64_t line) const { return shards_[line / kLineSize % kShards]; }
  static constexpr size_t kShards = 16;
  std::array<Shard, kShards> shards_;
};

}  // namespace streamfs::meta
