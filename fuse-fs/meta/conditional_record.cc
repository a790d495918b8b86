#include "fuse-fs/meta/conditional_record.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/checksum.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/checksums.h"
#include "fuse-fs/meta/extent_map.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/log_reader.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/record.h"

namespace streamfs::meta {

bool DataCondition::met_by(ConstBytes block_bytes) const {
  static constexpr std::array<std::byte, kBlockSize> kZeroes{};
  const uint32_t crc = crc32c(block_bytes.first(length));
  return known_checksum(crc32c(ConstBytes(kZeroes).subspan(length), crc)) == checksum;
}

// ---- WRITTEN → COMMITTED AHEAD

namespace {

constexpr uint64_t kMaxConditions = 64;  // more is worth a flush of its own

struct Unflushed {
  FileBlock place;
  BlockNo block;
};

// Returns the unflushed blocks that the state as of `epoch` shows and META does not: new blocks and
// blocks that the file grew over. nullopt: too many, or too many extents and freed blocks.
std::optional<std::vector<Unflushed>> unflushed(const Inode& inode, uint64_t epoch,
                                                uint64_t flushed) {
  std::vector<Unflushed> out;
  uint64_t extents = inode.uncommitted.removed;  // freed blocks: each may be an extent of its own
  const auto add = [&](uint64_t first, uint64_t block, uint64_t length) {
    for (uint64_t i = 0; out.size() <= kMaxConditions && i < length; ++i) {
      const BlockNo here{block + i};
      if (std::ranges::find(out, here, &Unflushed::block) == out.end())
        out.push_back({FileBlock{first + i}, here});
    }
  };
  const auto add_overwritten = [&](const Extent& in) {
    for (const Inode::Overwritten& run : inode.overwritten) {
      const uint64_t from = std::max(run.first.value, in.block);
      const uint64_t to = std::min(run.first.value + run.count, in.block + in.length);
      if (run.epoch > flushed && from < to) add(in.first + from - in.block, from, to - from);
    }
  };
  // The file's shortest size since the last commit.
  const uint64_t begin = std::min(inode.committed.size, inode.ready_size) / kBlockSize;
  const uint64_t end = div_round_up(inode.size, kBlockSize);
  inode.extents->for_each_added(epoch, [&](const Extent& extent, uint64_t written_in) {
    ++extents;  // the record has all added extents, flushed ones too
    if (extent.unwritten) return;
    if (written_in > flushed) return add(extent.first, extent.block, extent.length);
    if (extent.end() > begin && extents <= kMaxConditions) add_overwritten(extent);
  });
  for (uint64_t at = begin; at < end && out.size() <= kMaxConditions;) {
    const std::optional<Extent> next = inode.extents->next_committed(at, epoch);
    if (!next || next->first >= end) break;
    at = next->end();
    add_overwritten(*next);
  }
  if (out.size() > kMaxConditions || extents > kMaxConditions) return std::nullopt;
  return out;
}

// Returns the bytes of the block that lie inside the file. A block that a later write replaced
// counts whole: nobody writes to it, and the file's size may have shrunk since.
uint32_t length_of(const Inode& inode, const Unflushed& each) {
  const std::optional<Extent> now = inode.extents->next(each.place.value);
  const uint64_t start = each.place.value * kBlockSize;
  const bool shown = now && now->first == each.place.value && now->block == each.block.value;
  if (!shown || inode.size <= start) return kBlockSize;
  return static_cast<uint32_t>(std::min(inode.size - start, kBlockSize));
}

}  // namespace

std::optional<std::vector<DataCondition>> conditions_of(const Inode& inode,
                                                        const Checksums& checksums, uint64_t epoch,
                                                        uint64_t flushed) {
  if (!inode.changed_place())
    return std::vector<DataCondition>{};  // a record of times alone needs no condition
  const auto blocks = unflushed(inode, epoch, flushed);
  if (!blocks) return std::nullopt;
  std::vector<DataCondition> out;
  for (const Unflushed& each : *blocks) {
    uint32_t crc = 0;
    checksums.read(each.block, {&crc, 1});
    if (crc == 0) return std::nullopt;  // an overwrite is going on
    out.push_back({each.block, crc, length_of(inode, each)});
  }
  return out;
}

// ---- COMMITTED AHEAD → SETTLED

// If the block already has an open condition, that one is still met: no write has changed the bytes
// that it covers. The two merge: the newer checksum and the longer length. The bytes between the
// lengths are zero, so the checksum holds for both.
void OpenConditions::add(std::span<const DataCondition> conditions, TxId record) {
  if (conditions.empty()) return;
  const MutexLock lock(mutex_);
  for (const DataCondition& condition : conditions) {
    Open& open = by_block_[condition.block.value];
    const uint32_t length = std::max(open.condition.length, condition.length);
    open = {record.value, condition};
    open.condition.length = length;
  }
  count_.store(by_block_.size(), std::memory_order_release);
}

void OpenConditions::settle(TxId through) {
  if (none()) return;
  const MutexLock lock(mutex_);
  std::erase_if(by_block_, [&](const auto& each) { return each.second.sequence <= through.value; });
  count_.store(by_block_.size(), std::memory_order_release);
}

bool OpenConditions::forbids(BlockNo first, ConstBytes blocks) const {
  if (none()) return false;
  const uint64_t count = blocks.size() / kBlockSize;
  const auto unmet = [&](const auto& each) {
    const uint64_t at = each.first - first.value;
    if (at >= count) return false;  // also if the block lies before `first`: the subtraction wraps
    return !each.second.condition.met_by(blocks.subspan(at * kBlockSize, kBlockSize));
  };
  const MutexLock lock(mutex_);
  if (by_block_.size() < count) return std::ranges::any_of(by_block_, unmet);
  for (uint64_t i = 0; i < count; ++i) {
    const auto found = by_block_.find(first.value + i);
    if (found != by_block_.end() && unmet(*found)) return true;
  }
  return false;
}

bool OpenConditions::any_up_to(TxId through) const {
  if (none()) return false;
  const MutexLock lock(mutex_);
  return std::ranges::any_of(
      by_block_, [&](const auto& each) { return each.second.sequence <= through.value; });
}

// ---- The restore

namespace {

constexpr uint64_t kAllCount = kMaxSequence + 1;

Result<bool> is_met(const LogCondition& condition, const DataLabel& label, LogDevice& device) {
  if (condition.block >= label.geometry.data_blocks || condition.length > kBlockSize)
    return Error{EIO, "the metadata log is damaged"};
  std::vector<std::byte> block(kBlockSize);
  if (!device.read(BlockNo{condition.block}, block).ok()) return true;
  const uint32_t length = condition.length == 0 ? kBlockSize : condition.length;
  return DataCondition{BlockNo{condition.block}, condition.checksum, length}.met_by(block);
}

}  // namespace

Result<uint64_t> replay_end(const DataLabel& label, const SnapshotHeader& snapshot,
                            LogDevice& device) {
  std::vector<LogCondition> open;
  uint64_t settled = snapshot.sequence;
  LogReader chunks(label, snapshot, device);
  for (;;) {
    SFS_ASSIGN(const auto chunk, chunks.next());
    if (!chunk) break;
    settled = std::max(settled, chunk->settled);
    open.insert(open.end(), chunk->conditions.begin(), chunk->conditions.end());
    std::erase_if(open, [&](const LogCondition& each) { return each.sequence <= settled; });
  }
  uint64_t first = kAllCount;
  // Chunks are in the order of sequences.
  if (chunks.in_group()) first = chunks.whole_through() + 1;
  for (const LogCondition& each : open) {
    if (each.sequence >= first) continue;
    SFS_ASSIGN(const bool met, is_met(each, label, device));
    if (!met) first = each.sequence;
  }
  return first;
}

}  // namespace streamfs::meta
