#include "fuse-fs/data/data_path.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/write_job.h"

namespace streamfs::data {
namespace {

// First block a write must hold: its own, or the last one of the file if it leaves a gap after it.
uint64_t first_block(uint64_t size, uint64_t offset) {
  const bool gap = size % kBlockSize != 0 && offset / kBlockSize > size / kBlockSize;
  return (gap ? size : offset) / kBlockSize;
}

}  // namespace

Result<void> DataPath::write(InodeId id, uint64_t offset, ConstBytes in, meta::WriteTimes times) {
  if (in.empty()) return {};
  if (offset > kMaxFileBytes || in.size() > kMaxFileBytes - offset) return Error{EFBIG};
  const auto state = core_.states.get(id);
  const uint64_t last = (offset + in.size() - 1) / kBlockSize;
  SFS_ASSIGN(meta::Attributes now, core_.engine.attributes(id));
  while (true) {
    const uint64_t first = first_block(now.size, offset);
    const RangeLock::Guard guard(state->blocks, first, last, RangeLock::Access::kExclusive);
    SFS_ASSIGN(now, core_.engine.attributes(id));
    if (first_block(now.size, offset) < first) continue;  // cut shorter while we waited
    if (first_block(now.size, offset) < offset / kBlockSize) {
      SFS_TRY(
          zero_in_block(*state, now, now.size, round_up(now.size, kBlockSize), now.size, times));
    }
    return WriteJob(core_, *state, now, offset, in, offset + in.size(), times).run();
  }
}

Result<void> DataPath::zero_in_block(InodeState& state, const meta::Attributes& now, uint64_t from,
                                     uint64_t to, uint64_t end_offset, meta::WriteTimes times) {
  static constexpr std::array<std::byte, kBlockSize> kZeroes{};
  if (from == to) return {};
  SFS_ASSIGN(const auto pieces, core_.engine.map(now.id, FileBlock{from / kBlockSize}, 1));
  if (pieces.empty() || pieces.front().hole) return {};
  const ConstBytes zeroes(kZeroes);
  return WriteJob(core_, state, now, from, zeroes.first(to - from), end_offset, times).run();
}

// Whichever way the size changes, what lies between the old or new end and its block's end must
// read as zero when the file grows over it; no commit has the size of one that does before these
// zeroes are there.
Result<void> DataPath::resize_locked(InodeState& state, const meta::Attributes& now,
                                     uint64_t size) {
  const uint64_t end = std::min(size, now.size);
  if (end % kBlockSize != 0 && size != now.size) {
    SFS_TRY(zero_in_block(state, now, end, round_up(end, kBlockSize), size));
  }
  SFS_TRY(core_.engine.set_size(now.id, size));
  core_.epochs.touched(now.id, 0, 0);
  return {};
}

Result<void> DataPath::truncate(InodeId id, uint64_t size) {
  if (size > kMaxFileBytes) return Error{EFBIG};
  const auto state = core_.states.get(id);
  const RangeLock::Guard guard(state->blocks, 0, RangeLock::kToTheEnd,
                               RangeLock::Access::kExclusive);
  SFS_ASSIGN(const meta::Attributes now, core_.engine.attributes(id));
  return resize_locked(*state, now, size);
}

Result<void> DataPath::preallocate(InodeId id, uint64_t offset, uint64_t length, bool keep_size) {
  const auto state = core_.states.get(id);
  const RangeLock::Guard guard(state->blocks, 0, RangeLock::kToTheEnd,
                               RangeLock::Access::kExclusive);
  SFS_ASSIGN(const meta::Attributes now, core_.engine.attributes(id));
  const uint64_t first = offset / kBlockSize;
  const uint64_t count = div_round_up(offset + length, kBlockSize) - first;
  SFS_ASSIGN(const auto pieces, core_.engine.map(id, FileBlock{first}, count));
  uint64_t missing = 0;
  for (const meta::Piece& piece : pieces) missing += piece.hole ? piece.length : 0;
  if (missing > core_.engine.space().free_blocks) return Error{ENOSPC, "preallocation"};
  if (keep_size || offset + length <= now.size) return {};
  return resize_locked(*state, now, offset + length);
}

Result<void> DataPath::punch_locked(InodeState& state, const meta::Attributes& now, uint64_t from,
                                    uint64_t to) {
  const uint64_t whole_from = round_up(from, kBlockSize), whole_to = round_down(to, kBlockSize);
  if (whole_from > whole_to) return zero_in_block(state, now, from, to, now.size);
  SFS_TRY(zero_in_block(state, now, from, whole_from, now.size));
  SFS_TRY(zero_in_block(state, now, whole_to, to, now.size));
  if (whole_from == whole_to) return {};
  const uint64_t first = whole_from / kBlockSize;
  SFS_TRY(core_.engine.remove_range(now.id, FileBlock{first}, whole_to / kBlockSize - first));
  core_.epochs.touched(now.id, 0, 0);
  return {};
}

Result<void> DataPath::zero(InodeId id, uint64_t offset, uint64_t length, bool keep_size) {
  const auto state = core_.states.get(id);
  const RangeLock::Guard guard(state->blocks, 0, RangeLock::kToTheEnd,
                               RangeLock::Access::kExclusive);
  SFS_ASSIGN(const meta::Attributes now, core_.engine.attributes(id));
  // Past the end there is nothing to take away, but for the rest of the last block.
  const uint64_t to = std::min(offset + length, round_up(now.size, kBlockSize));
  if (offset < to) SFS_TRY(punch_locked(*state, now, offset, to));
  if (keep_size || offset + length <= now.size) return {};
  return resize_locked(*state, now, offset + length);
}

Result<void> DataPath::shift(InodeId id, Shift kind, uint64_t offset, uint64_t length) {
  const auto state = core_.states.get(id);
  const RangeLock::Guard guard(state->blocks, 0, RangeLock::kToTheEnd,
                               RangeLock::Access::kExclusive);
  SFS_TRY(core_.engine.map(id, FileBlock{0}, 0));  // of what has no extents, this is the error
  if (offset % kBlockSize != 0 || length % kBlockSize != 0) return Error{EINVAL};
  SFS_TRY(core_.epochs.flush_through(state->last_epoch.load(std::memory_order_acquire)));
  SFS_TRY(core_.epochs.commit(id));
  const FileBlock first{offset / kBlockSize};
  const uint64_t count = length / kBlockSize;
  return kind == Shift::kInsert ? core_.engine.insert_range(id, first, count)
                                : core_.engine.collapse_range(id, first, count);
}

}  // namespace streamfs::data
