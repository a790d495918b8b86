#include "fuse-fs/meta/checksums.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/mutex.h"
#include "base/types.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/flushed.h"

namespace streamfs::meta {

uint32_t Checksums::stored(uint64_t block) const {
  const uint64_t at = geometry_.checksum_offset(BlockNo{block});
  const uint64_t word = region_.load(round_down(at, kWordSize));
  return static_cast<uint32_t>(word >> at % kWordSize * 8);
}

void Checksums::read(BlockNo first, std::span<uint32_t> out) const {
  if (!geometry_.checksums()) {
    std::ranges::fill(out, 0);
    return;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t block = first.value + i;
    out[i] = stored(block);
    if (out[i] != 0 || groups_.load(std::memory_order_acquire) == 0) continue;
    const Shard& at = shard(block / kGroup);
    const MutexLock lock(at.mutex);
    const auto found = at.groups.find(block / kGroup);
    if (found == at.groups.end()) continue;
    if ((found->second.mask >> block % kGroup & 1) != 0)
      out[i] = found->second.crcs[block % kGroup];
  }
}

void Checksums::store(BlockNo first, std::span<const uint32_t> crcs) {
  if (!geometry_.checksums()) return;
  for (size_t i = 0; i < crcs.size();) {
    const uint64_t at = geometry_.checksum_offset(BlockNo{first.value + i});
    const bool pair = at % kWordSize == 0 && i + 1 < crcs.size() &&
                      geometry_.checksum_offset(BlockNo{first.value + i + 1}) == at + 4;
    put(at, pair, crcs[i], pair ? crcs[i + 1] : 0);
    i += pair ? 2 : 1;
  }
}

void Checksums::put(uint64_t at, bool pair, uint32_t crc, uint32_t next) {
  words_.add(
      0, pair ? region_.store_word(at, crc | uint64_t{next} << 32) : region_.store_half(at, crc));
}

void Checksums::put_one(uint64_t block, uint32_t crc) {
  put(geometry_.checksum_offset(BlockNo{block}), false, crc, 0);
}

pmem::Flushed Checksums::flush(BlockNo first, uint64_t count) {
  if (!geometry_.checksums() || count == 0) return {};
  const uint64_t begin = geometry_.checksum_offset(first);
  const uint64_t last = geometry_.checksum_offset(BlockNo{first.value + count - 1});
  if (last - begin == (count - 1) * 4) return region_.flush(begin, last + 4 - begin);
  const uint64_t half = count / 2;  // crosses segments
  pmem::Flushed flushed = flush(first, half);
  flushed += flush(BlockNo{first.value + half}, count - half);
  return flushed;
}

void Checksums::learn(BlockNo block, uint32_t crc) {
  if (!geometry_.checksums()) return;
  Shard& at = shard(block.value / kGroup);
  const MutexLock lock(at.mutex);
  const auto found = at.groups.find(block.value / kGroup);
  if (found != at.groups.end() && (found->second.mask >> block.value % kGroup & 1) != 0) return;
  if (stored(block.value) != 0) return;
  put_one(block.value, known_checksum(crc));
}

bool Checksums::mend(BlockNo block, uint32_t crc) {
  if (!geometry_.checksums()) return false;
  const uint64_t at = geometry_.checksum_offset(block);
  const Shard& of_block = shard(block.value / kGroup);
  const MutexLock lock(of_block.mutex);
  if (of_block.groups.contains(block.value / kGroup)) return false;  // being written
  for (size_t copy = 1; copy < region_.copies(); ++copy) {
    const uint64_t word = region_.copy(copy).load(round_down(at, kWordSize));
    if (static_cast<uint32_t>(word >> at % kWordSize * 8) != known_checksum(crc)) continue;
    put_one(block.value, known_checksum(crc));  // if a crash loses it, it is mended again
    region_.count_mended();
    return true;
  }
  return false;
}

template <typename Visit>
void Checksums::each_group(BlockNo first, uint64_t count, Visit&& visit) {
  const uint64_t end = first.value + count;
  for (uint64_t at = first.value; at < end;) {
    const uint64_t group = at / kGroup, upto = std::min(end, (group + 1) * kGroup);
    visit(group, Blocks{at, upto});
    at = upto;
  }
}

// Visits the blocks of `mask`. Two neighbours whose checksums share a word are visited together.
template <typename Visit>
void Checksums::each_word(const Blocks& blocks, uint64_t mask, Visit&& visit) const {
  const auto wanted = [&](uint64_t block) {
    return block < blocks.end && (mask >> block % kGroup & 1) != 0;
  };
  for (uint64_t block = blocks.first; block < blocks.end; ++block) {
    if (!wanted(block)) continue;
    const uint64_t at = geometry_.checksum_offset(BlockNo{block});
    const bool pair = at % kWordSize == 0 && wanted(block + 1) &&
                      geometry_.checksum_offset(BlockNo{block + 1}) == at + sizeof(uint32_t);
    visit(block, at, pair);
    block += pair ? 1 : 0;
  }
}

Checksums::Group& Checksums::group_of(Shard& at, uint64_t group) {
  const auto [found, is_new] = at.groups.try_emplace(group);
  if (is_new) groups_.fetch_add(1, std::memory_order_acq_rel);
  return found->second;
}

pmem::Flushed Checksums::begin_overwrite(BlockNo first, uint64_t count) {
  if (!geometry_.checksums()) return {};
  bool cleared = false;
  each_group(first, count, [&](uint64_t number, const Blocks& blocks) {
    Shard& at = shard(number);
    const MutexLock lock(at.mutex);
    Group& group = group_of(at, number);
    group.mask |= blocks.mask();
    for (uint64_t block = blocks.first; block < blocks.end; ++block) {
      group.crcs[block % kGroup] = 0;
      group.epochs[block % kGroup] = 0;
    }
    each_word(blocks, blocks.mask(), [&](uint64_t block, uint64_t offset, bool pair) {
      const bool clear = stored(block) == 0 && (!pair || stored(block + 1) == 0);
      if (clear && region_.alike(offset, pair ? kWordSize : sizeof(uint32_t))) return;
      put(offset, pair, 0, 0);
      cleared = true;
    });
  });
  return cleared ? flush(first, count) : pmem::Flushed();
}

void Checksums::finish_overwrite(BlockNo first, std::span<const uint32_t> crcs, uint64_t epoch) {
  if (!geometry_.checksums()) return;
  each_group(first, crcs.size(), [&](uint64_t number, const Blocks& blocks) {
    Shard& at = shard(number);
    const MutexLock lock(at.mutex);
    Group& group = group_of(at, number);
    group.mask |= blocks.mask();
    for (uint64_t block = blocks.first; block < blocks.end; ++block) {
      group.crcs[block % kGroup] = known_checksum(crcs[block - first.value]);
      group.epochs[block % kGroup] = epoch;
    }
  });
}

void Checksums::drop(Shard& at, uint64_t group, uint64_t mask) {
  const auto found = at.groups.find(group);
  if (found == at.groups.end()) return;
  found->second.mask &= ~mask;
  if (found->second.mask != 0) return;
  at.groups.erase(found);
  groups_.fetch_sub(1, std::memory_order_acq_rel);
}

pmem::Flushed Checksums::publish(BlockNo first, uint64_t count, uint64_t epoch) {
  if (!geometry_.checksums()) return {};
  each_group(first, count, [&](uint64_t number, const Blocks& blocks) {
    Shard& at = shard(number);
    const MutexLock lock(at.mutex);
    const auto found = at.groups.find(number);
    if (found == at.groups.end()) return;
    const Group& group = found->second;
    uint64_t done = 0;
    for (uint64_t block = blocks.first; block < blocks.end; ++block) {
      const uint64_t index = block % kGroup;
      // A block that was overwritten again waits for the later write's epoch.
      const bool mine = group.crcs[index] != 0 && group.epochs[index] == epoch;
      done |= mine ? group.mask & uint64_t{1} << index : 0;
    }
    each_word(blocks, done, [&](uint64_t block, uint64_t offset, bool pair) {
      const uint64_t index = block % kGroup;
      put(offset, pair, group.crcs[index], pair ? group.crcs[index + 1] : 0);
    });
    drop(at, number, done);
  });
  return flush(first, count);
}

void Checksums::drop_in_flux(BlockNo first, uint64_t count) {
  if (groups_.load(std::memory_order_acquire) == 0) return;
  each_group(first, count, [&](uint64_t number, const Blocks& blocks) {
    Shard& at = shard(number);
    const MutexLock lock(at.mutex);
    drop(at, number, blocks.mask());
  });
}

}  // namespace streamfs::meta
