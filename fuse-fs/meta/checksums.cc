#include "fuse-fs/meta/checksums.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/mutex.h"
#include "base/types.h"
#include "fuse-fs/meta/home_blocks.h"
#include "fuse-fs/meta/layout.h"

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
    if (pair) {
      region_.store_word(at, crcs[i] | uint64_t{crcs[i + 1]} << 32);
      i += 2;
    } else {
      region_.store_half(at, crcs[i]);
      ++i;
    }
  }
}

void Checksums::flush(BlockNo first, uint64_t count, HomeBlocks& touched) {
  if (!geometry_.checksums() || count == 0) return;
  const uint64_t begin = geometry_.checksum_offset(first);
  const uint64_t last = geometry_.checksum_offset(BlockNo{first.value + count - 1});
  if (last - begin == (count - 1) * 4) {
    region_.flush(begin, last + 4 - begin);
    touched.add(begin, last + 4 - begin);
    return;
  }
  const uint64_t half = count / 2;  // crosses segments
  flush(first, half, touched);
  flush(BlockNo{first.value + half}, count - half, touched);
}

void Checksums::learn(BlockNo block, uint32_t crc) {
  if (!geometry_.checksums()) return;
  Shard& at = shard(block.value / kGroup);
  const MutexLock lock(at.mutex);
  const auto found = at.groups.find(block.value / kGroup);
  if (found != at.groups.end() && (found->second.mask >> block.value % kGroup & 1) != 0) return;
  if (stored(block.value) != 0) return;
  region_.store_half(geometry_.checksum_offset(block), known_checksum(crc));
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
    region_.store_half(at, known_checksum(crc));  // lost in a cut, it is mended again
    region_.count_mended();
    return true;
  }
  return false;
}

bool Checksums::begin(BlockNo first, uint64_t count, HomeBlocks& touched) {
  if (!geometry_.checksums()) return false;
  bool cleared = false;
  for (uint64_t block = first.value; block < first.value + count; ++block) {
    Shard& at = shard(block / kGroup);
    const MutexLock lock(at.mutex);
    const auto [found, is_new] = at.groups.try_emplace(block / kGroup);
    if (is_new) groups_.fetch_add(1, std::memory_order_acq_rel);
    found->second.mask |= uint64_t{1} << block % kGroup;
    found->second.crcs[block % kGroup] = 0;
    found->second.epochs[block % kGroup] = 0;
    const uint64_t at_word = geometry_.checksum_offset(BlockNo{block});
    if (stored(block) == 0 && region_.alike(at_word, sizeof(uint32_t))) continue;
    region_.store_half(at_word, 0);
    cleared = true;
  }
  if (cleared) flush(first, count, touched);
  return cleared;
}

void Checksums::finish(BlockNo block, uint32_t crc, uint64_t epoch) {
  if (!geometry_.checksums()) return;
  Shard& at = shard(block.value / kGroup);
  const MutexLock lock(at.mutex);
  const auto [found, is_new] = at.groups.try_emplace(block.value / kGroup);
  if (is_new) groups_.fetch_add(1, std::memory_order_acq_rel);
  found->second.mask |= uint64_t{1} << block.value % kGroup;
  found->second.crcs[block.value % kGroup] = known_checksum(crc);
  found->second.epochs[block.value % kGroup] = epoch;
}

void Checksums::drop(Shard& at, uint64_t group, uint64_t block) {
  const auto found = at.groups.find(group);
  if (found == at.groups.end()) return;
  found->second.mask &= ~(uint64_t{1} << block % kGroup);
  if (found->second.mask != 0) return;
  at.groups.erase(found);
  groups_.fetch_sub(1, std::memory_order_acq_rel);
}

void Checksums::settle(BlockNo first, uint64_t count, uint64_t epoch, HomeBlocks& touched) {
  if (!geometry_.checksums()) return;
  for (uint64_t block = first.value; block < first.value + count; ++block) {
    Shard& at = shard(block / kGroup);
    const MutexLock lock(at.mutex);
    const auto found = at.groups.find(block / kGroup);
    if (found == at.groups.end()) continue;
    const Group& group = found->second;
    const uint64_t index = block % kGroup;
    // Overwritten again since: the later write's checksum is the one to wait for.
    if ((group.mask >> index & 1) == 0 || group.crcs[index] == 0 || group.epochs[index] != epoch) {
      continue;
    }
    region_.store_half(geometry_.checksum_offset(BlockNo{block}), group.crcs[index]);
    drop(at, block / kGroup, block);
  }
  flush(first, count, touched);
}

void Checksums::forget(BlockNo first, uint64_t count) {
  if (groups_.load(std::memory_order_acquire) == 0) return;
  for (uint64_t block = first.value; block < first.value + count; ++block) {
    Shard& at = shard(block / kGroup);
    const MutexLock lock(at.mutex);
    drop(at, block / kGroup, block);
  }
}

}  // namespace streamfs::meta
