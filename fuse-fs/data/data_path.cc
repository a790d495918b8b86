#include "fuse-fs/data/data_path.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "base/waiting.h"
#include "fuse-fs/blockdev/buffer.h"
#include "fuse-fs/data/write_job.h"

namespace streamfs::data {
namespace {

// Returns the first block that a write must hold: its own, or the last block of the file if the
// write leaves a gap after it.
uint64_t first_block(uint64_t size, uint64_t offset) {
  const bool gap = size % kBlockSize != 0 && offset / kBlockSize > size / kBlockSize;
  return (gap ? size : offset) / kBlockSize;
}

}  // namespace

Result<void> DataPath::write(InodeId id, uint64_t offset, ConstBytes in, meta::WriteTimes times) {
  if (in.empty()) return {};
  if (offset > kMaxFileBytes || in.size() > kMaxFileBytes - offset) return Error{EFBIG};
  Result<void> done = write_all(id, offset, in, times);
  if (!done.ok() && done.error().code == ENOSPC)
    write_where_there_are_blocks(id, offset, in, times);
  return done;
}

Result<void> DataPath::write_all(InodeId id, uint64_t offset, ConstBytes in,
                                 meta::WriteTimes times) {
  const uint64_t last = (offset + in.size() - 1) / kBlockSize;
  while (true) {
    bool lacks_slots = false;
    const std::optional<Result<void>> done = try_write(id, offset, in, times, lacks_slots);
    if (done && !lacks_slots) return *done;
    if (lacks_slots) SFS_TRY(write_whole_extents(id, offset / kBlockSize, last));
  }
}

// Tries a write. nullopt: the file was cut shorter while this waited for its blocks.
std::optional<Result<void>> DataPath::try_write(InodeId id, uint64_t offset, ConstBytes in,
                                                meta::WriteTimes times, bool& lacks_slots) {
  const auto state = core_.states.get(id);
  Result<meta::Attributes> now = core_.engine.attributes(id);
  if (!now) return now.error();
  const uint64_t first = first_block(now->size, offset);
  const RangeLock::Guard guard(state->blocks, first, (offset + in.size() - 1) / kBlockSize,
                               RangeLock::Access::kExclusive);
  if (!guard) return would_wait();
  now = core_.engine.attributes(id);
  if (!now) return now.error();
  if (first_block(now->size, offset) < first) return std::nullopt;
  if (first_block(now->size, offset) < offset / kBlockSize) {
    const Result<void> gap =
        zero_in_block(*state, *now, now->size, round_up(now->size, kBlockSize), now->size, times);
    if (!gap.ok()) return gap;
  }
  WriteJob job(core_, *state, *now, offset, in, offset + in.size(), times);
  const Result<void> done = job.run();
  lacks_slots = job.lacks_slots();
  return done;
}

// Writes only the pages that have blocks, on a full disk. The kernel sends pages with and without
// blocks in one request, also of different programs, and a program that only overwrites must not
// lose its pages. The file becomes longer only over preallocated blocks.
void DataPath::write_where_there_are_blocks(InodeId id, uint64_t offset, ConstBytes in,
                                            meta::WriteTimes times) {
  const uint64_t first = offset / kBlockSize, end = offset + in.size();
  const auto now = core_.engine.attributes(id);
  const auto pieces = core_.engine.map(id, FileBlock{first}, div_round_up(end, kBlockSize) - first);
  if (!now || !pieces || std::ranges::none_of(*pieces, &meta::Piece::hole)) return;
  for (const meta::Piece& piece : *pieces) {
    const uint64_t most = piece.unwritten ? end : std::min(end, now->size);
    const uint64_t from = std::max(offset, piece.first.value * kBlockSize);
    const uint64_t to = std::min(most, (piece.first.value + piece.length) * kBlockSize);
    if (!piece.hole && from < to)
      (void)write_all(id, from, in.subspan(from - offset, to - from), times);
  }
}

// Writes zeroes to all of the unwritten extents that lie in this range. They become written extents
// of the same number, so META needs no room for that. A write into them is then an overwrite.
Result<void> DataPath::write_whole_extents(InodeId id, uint64_t first, uint64_t last) {
  const auto state = core_.states.get(id);
  const RangeLock::Guard guard(state->blocks, 0, RangeLock::kToTheEnd,
                               RangeLock::Access::kExclusive);
  SFS_ASSIGN(const meta::Attributes now, core_.engine.attributes(id));
  const uint64_t from = first - std::min(first, meta::kMaxUnwrittenBlocks);
  const uint64_t end = std::min(last + meta::kMaxUnwrittenBlocks, meta::kMaxFileBlocks);
  SFS_ASSIGN(const auto pieces, core_.engine.map(id, FileBlock{from}, end - from));
  const std::vector<blockdev::BlockBuffer> zeroes(meta::kMaxUnwrittenBlocks);
  for (const meta::Piece& piece : pieces) {
    const bool meets = piece.first.value <= last && piece.first.value + piece.length > first;
    if (!piece.unwritten || !meets) continue;
    const ConstBytes bytes = std::as_bytes(std::span(zeroes)).first(piece.length * kBlockSize);
    WriteJob job(core_, *state, now, piece.first.value * kBlockSize, bytes, now.size,
                 meta::WriteTimes::kSetByKernel);
    job.splits_nothing();
    SFS_TRY(job.run());
  }
  return {};
}

Result<void> DataPath::zero_in_block(InodeState& state, const meta::Attributes& now, uint64_t from,
                                     uint64_t to, uint64_t end_offset, meta::WriteTimes times) {
  static constexpr std::array<std::byte, kBlockSize> kZeroes{};
  if (from == to) return {};
  SFS_ASSIGN(const auto pieces, core_.engine.map(now.id, FileBlock{from / kBlockSize}, 1));
  if (pieces.empty() || pieces.front().hole || pieces.front().unwritten) return {};
  const ConstBytes zeroes(kZeroes);
  return WriteJob(core_, state, now, from, zeroes.first(to - from), end_offset, times).run();
}

// Changes the size. Bytes from the smaller of the two ends to the end of its block must read as
// zero when the file grows over them. They are zeroed first, so no commit has a larger size before
// that.
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
  if (!guard) return would_wait();
  SFS_ASSIGN(const meta::Attributes now, core_.engine.attributes(id));
  return resize_locked(*state, now, size);
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

Result<void> DataPath::punch(InodeId id, uint64_t offset, uint64_t length) {
  const auto state = core_.states.get(id);
  const RangeLock::Guard guard(state->blocks, 0, RangeLock::kToTheEnd,
                               RangeLock::Access::kExclusive);
  SFS_ASSIGN(const meta::Attributes now, core_.engine.attributes(id));
  return punch_locked(*state, now, offset, offset + length);
}

// Flushes and commits all changes of the file.
Result<void> DataPath::commit_all(InodeState& state, InodeId id) {
  SFS_TRY(core_.epochs.flush_through(state.last_epoch.load(std::memory_order_acquire)));
  return core_.epochs.commit(id);
}

}  // namespace streamfs::data
