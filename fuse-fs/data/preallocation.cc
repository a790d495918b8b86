// fallocate(): blocks that a file has before anything is written to them.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/data_path.h"
#include "fuse-fs/data/slot_room.h"
#include "fuse-fs/data/write_job.h"

namespace streamfs::data {
namespace {

// Blocks reserved from the allocator. The destructor frees those that are still in `pieces`.
struct Reserved {
  explicit Reserved(meta::BlockAllocator& from) : blocks(from) {}
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  ~Reserved() {
    for (const auto& piece : pieces) blocks.cancel({piece.block, piece.length});
  }
  meta::BlockAllocator& blocks;
  std::vector<meta::WriteResult::NewPiece> pieces;
};

}  // namespace

Result<void> DataPath::preallocate(InodeId id, uint64_t offset, uint64_t length, bool keep_size) {
  const auto state = core_.states.get(id);
  const RangeLock::Guard guard(state->blocks, 0, RangeLock::kToTheEnd,
                               RangeLock::Access::kExclusive);
  SFS_ASSIGN(const meta::Attributes now, core_.engine.attributes(id));
  SFS_TRY(fill_holes(*state, now, offset, length));
  if (keep_size || offset + length <= now.size) return {};
  return resize_locked(*state, now, offset + length);
}

Result<void> DataPath::fill_holes(const InodeState& state, const meta::Attributes& now,
                                  uint64_t offset, uint64_t length) {
  const uint64_t first = offset / kBlockSize;
  const uint64_t count = div_round_up(offset + length, kBlockSize) - first;
  SFS_ASSIGN(const auto pieces, core_.engine.map(now.id, FileBlock{first}, count));
  Reserved reserved(core_.engine.blocks());
  SFS_TRY(reserve_or_reclaim(vstream_of(core_.placement, state, now), pieces, reserved.pieces));
  if (reserved.pieces.empty()) return {};
  uint64_t slots = 1;
  for (const auto& piece : reserved.pieces) slots += meta::unwritten_extents(piece.length);
  SFS_ASSIGN(meta::SlotRoom room, slot_room(core_, slots));
  const NewPieces added = std::exchange(reserved.pieces, {});
  SFS_TRY(core_.engine.preallocate(now.id, added, room));
  core_.epochs.touched(now.id, 0, 0);
  return {};
}

// A request that cannot be met takes no blocks away from other writers meanwhile.
Result<void> DataPath::reserve_or_reclaim(VStreamId vstream, const std::vector<meta::Piece>& pieces,
                                          NewPieces& added) {
  uint64_t missing = 0;
  for (const meta::Piece& piece : pieces) missing += piece.hole ? piece.length : 0;
  if (missing == 0) return {};
  Result<void> done = Error{ENOSPC, "preallocation"};
  const auto reserved = [&] {
    if (missing > core_.engine.blocks().free_blocks()) return false;
    done = reserve(vstream, pieces, added);
    if (!done.ok()) cancel(added);
    return done.ok() || done.error().code != ENOSPC;
  };
  if (!reserved()) core_.reclaim(reserved);
  return done;
}

Result<void> DataPath::reserve(VStreamId vstream, const std::vector<meta::Piece>& pieces,
                               NewPieces& added) {
  const PStreamId home = core_.placement.plain_route(vstream);
  std::optional<BlockNo> near;
  for (const meta::Piece& piece : pieces) {
    if (!piece.hole) {
      near = BlockNo{piece.block.value + piece.length};
      continue;
    }
    for (uint64_t done = 0; done < piece.length;) {
      SFS_ASSIGN(const meta::BlockRun run,
                 core_.engine.blocks().reserve(piece.length - done, home, near));
      added.push_back({FileBlock{piece.first.value + done}, run.first, run.count, vstream});
      done += run.count;
      near = BlockNo{run.first.value + run.count};
    }
  }
  return {};
}

void DataPath::cancel(NewPieces& added) {
  for (const auto& piece : added) core_.engine.blocks().cancel({piece.block, piece.length});
  added.clear();
}

Result<void> DataPath::zero(InodeId id, uint64_t offset, uint64_t length, bool keep_size) {
  const auto state = core_.states.get(id);
  const RangeLock::Guard guard(state->blocks, 0, RangeLock::kToTheEnd,
                               RangeLock::Access::kExclusive);
  SFS_ASSIGN(const meta::Attributes now, core_.engine.attributes(id));
  const uint64_t end = offset + length;
  SFS_TRY(fill_holes(*state, now, offset, length));
  const uint64_t from = round_up(offset, kBlockSize);
  const uint64_t to = end < now.size ? round_down(end, kBlockSize) : round_up(end, kBlockSize);
  if (from < to) SFS_TRY(unwrite(*state, id, from / kBlockSize, to / kBlockSize));
  SFS_TRY(zero_in_block(*state, now, offset, std::min(from, end), now.size));
  if (from <= to && to < end) SFS_TRY(zero_in_block(*state, now, to, end, now.size));
  if (keep_size || end <= now.size) return {};
  return resize_locked(*state, now, end);
}

// Turns the written blocks of [first, end) into unwritten ones. The engine does that to committed
// extents only, so the whole file is committed first. With an intent log the blocks go home before
// that, so that no entry is left, and the record after it, because later writes go in their place.
Result<void> DataPath::unwrite(InodeState& state, InodeId id, uint64_t first, uint64_t end) {
  SFS_ASSIGN(const auto pieces, core_.engine.map(id, FileBlock{first}, end - first));
  uint64_t slots = 1;
  for (const meta::Piece& piece : pieces) {
    if (!piece.hole && !piece.unwritten) slots += 2 * meta::unwritten_extents(piece.length);
  }
  if (slots == 1) return {};
  SFS_ASSIGN(meta::SlotRoom room, slot_room(core_, slots));
  SFS_TRY(commit_all(state, id));
  SFS_TRY(core_.epochs.settle_zeroed());
  SFS_TRY(core_.engine.unwrite(id, FileBlock{first}, end - first, room));
  core_.epochs.touched(id, 0, 0);
  return core_.epochs.settle_zeroed();
}

}  // namespace streamfs::data
