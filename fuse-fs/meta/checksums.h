// Keeps the checksums of data: those stored in META, and the pending ones of blocks in flux. A
// block is in flux from the start of an overwrite until publish() after the flush of the
// overwrite's epoch. Its stored checksum is 0 meanwhile.
//
// Checksums of newly allocated blocks are stored at once: no committed extent names the block yet.
//
// Without kFeatureChecksums read() returns zeroes, and the other methods do nothing.
// Thread safety: any thread may call any method; each shard has a leaf mutex.
// After a crash: the checksum of every block in flux is 0, so any content of it is accepted.
#pragma once

#include <array>
#include <atomic>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/thread_counters.h"
#include "base/types.h"
#include "fuse-fs/meta/geometry.h"
#include "pmem/region.h"

namespace streamfs::meta {

class Checksums {
 public:
  Checksums(pmem::Region& region, const Geometry& geometry)
      : region_(region), geometry_(geometry) {}

  // Reads the checksums that the blocks should have: the stored one, or the pending one of a block
  // in flux. 0 = not known.
  void read(BlockNo first, std::span<uint32_t> out) const;
  // Stores the checksums of a run without flushing them.
  void store(BlockNo first, std::span<const uint32_t> crcs);
  // Flushes the words of these checksums. The caller fences the result.
  pmem::Flushed flush(BlockNo first, uint64_t count);
  // Stores the checksum of a block that was read, unless it is in flux or its checksum is known.
  // Does not flush.
  void learn(BlockNo block, uint32_t crc);
  // Stores this checksum if another copy of META has it. Returns whether it did. Returns false,
  // too, while any of the 64 blocks of the block's group is in flux.
  bool mend(BlockNo block, uint32_t crc);

  // ---- Blocks in flux
  // Begins an overwrite: forgets pending checksums and clears stored ones. The caller fences the
  // result before the device writes; it is empty if all stored checksums were 0 already.
  pmem::Flushed begin_overwrite(BlockNo first, uint64_t count);
  // Notes the pending checksums of an overwrite that has completed in `epoch`.
  void finish_overwrite(BlockNo first, std::span<const uint32_t> crcs, uint64_t epoch);
  // Stores the pending checksums of blocks last written in `epoch`, and ends their flux. The caller
  // fences the result. Requires: the device was flushed after the epoch, or the intent log has
  // the data.
  pmem::Flushed publish(BlockNo first, uint64_t count, uint64_t epoch);
  void drop_in_flux(BlockNo first, uint64_t count);  // the blocks left their file

  // Returns the number of words of META whose value this object has changed.
  uint64_t words_programmed() const { return words_.sum(0); }

 private:
  static constexpr uint64_t kGroup = 64;  // blocks
  struct Group {
    uint64_t mask = 0;                    // blocks in flux
    std::array<uint32_t, kGroup> crcs{};  // 0 = the overwrite is still going on
    std::array<uint64_t, kGroup> epochs{};
  };
  struct alignas(kLineSize) Shard {  // shares no cache line with another
    mutable Mutex mutex;             // leaf
    std::unordered_map<uint64_t, Group> groups SFS_GUARDED_BY(mutex);
  };
  static constexpr size_t kShards = 16;
  Shard& shard(uint64_t group) { return shards_[group % kShards]; }
  const Shard& shard(uint64_t group) const { return shards_[group % kShards]; }
  struct Blocks {  // of one group
    uint64_t first, end;
    uint64_t mask() const { return ~uint64_t{0} >> (kGroup - (end - first)) << first % kGroup; }
  };
  uint32_t stored(uint64_t block) const;
  // Stores `crc`, or as a pair both checksums of a word. Another thread may store the other
  // checksum of the word unless it is a pair.
  void put(uint64_t at, bool pair, uint32_t crc, uint32_t next);
  void put_one(uint64_t block, uint32_t crc);
  template <typename Visit>
  static void each_group(BlockNo first, uint64_t count, Visit&& visit);
  template <typename Visit>
  void each_word(const Blocks& blocks, uint64_t mask, Visit&& visit) const;
  Group& group_of(Shard& at, uint64_t group) SFS_REQUIRES(at.mutex);
  void drop(Shard& at, uint64_t group, uint64_t mask) SFS_REQUIRES(at.mutex);

  pmem::Region& region_;
  const Geometry& geometry_;
  std::array<Shard, kShards> shards_;
  ThreadCounters<1> words_;
  std::atomic<uint64_t> groups_{0};  // in all shards: nothing to look up while it is 0
};

}  // namespace streamfs::meta
