#include "fuse-fs/data/write_job.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "base/waiting.h"
#include "fuse-fs/blockdev/buffer.h"
#include "fuse-fs/data/meta_units.h"
#include "fuse-fs/data/slot_room.h"
#include "learning/steps.h"
#include "trace/trace.h"

namespace streamfs::data {
namespace {

constexpr uint64_t kPagesWorthACall = 8;  // to the kernel, with a microsecond of other work

}  // namespace

VStreamId vstream_of(const placement::Placement& placement, const InodeState& state,
                     const meta::Attributes& attributes) {
  if (attributes.vstream_hinted) return attributes.vstream;
  if (attributes.vstream != kDefaultVStream) {
    return placement.current(attributes.vstream, attributes.vstream_generation);
  }
  return inferred_vstream(placement, state);
}

VStreamId inferred_vstream(const placement::Placement& placement, const InodeState& state) {
  const uint32_t inferred = state.inferred.load(std::memory_order_relaxed);
  return placement.current(VStreamId{static_cast<uint16_t>(inferred)},
                           static_cast<uint8_t>(inferred >> 16));
}

WriteJob::WriteJob(Core& core, InodeState& state, const meta::Attributes& attributes,
                   uint64_t offset, ConstBytes in, uint64_t end_offset, meta::WriteTimes times)
    : core_(core),
      state_(state),
      attributes_(attributes),
      offset_(offset),
      end_offset_(end_offset),
      in_(in),
      first_(offset / kBlockSize),
      count_((offset + in.size() - 1) / kBlockSize - first_ + 1),
      vstream_(vstream_of(core.placement, state, attributes)),
      times_(times) {}

Result<void> WriteJob::run() {
  SFS_TRY(core_.epochs.begin_writing());
  SFS_TRY(map());
  if (!may_wait() && !stays_in_memory()) return would_wait();
  SFS_TRY(find_slots());
  SFS_TRY(prepare());
  SFS_TRY(place_or_reclaim());
  Result<void> done = begin_overwrite();
  const bool submitted = done.ok();
  if (done.ok()) done = submit();
  if (done.ok()) done = finish();
  if (!done.ok()) cancel(submitted);
  if (!done.ok() && submitted && !all_cached_ && !refused_) on_device(core_.epochs.epoch());
  return done;
}

// Notes that data of the file went to the device, which may lose it until a flush. A write that
// failed may have sent cached data there before it.
void WriteJob::on_device(uint64_t epoch) {
  state_.wrote_in(epoch);
  state_.wrote_to_device_in(epoch);
}

bool WriteJob::stays_in_memory() const {
  uint64_t fresh = 0;
  const bool moves = logs(), passes = passes_cache();
  for (const meta::Piece& piece : pieces_) {
    const bool replaces =
        !piece.hole && !piece.unwritten && core_.write_cache.holds(piece.block, piece.length);
    if (replaces) continue;
    if (passes || piece.unwritten || (!piece.hole && !moves)) return false;
    fresh += piece.length;
  }
  return core_.write_cache.takes(fresh);
}

// Returns whether an overwrite takes new blocks for the sake of the next fsync: it can be absorbed
// only if the write cache holds the data. A file that was never synced is overwritten in place.
bool WriteJob::logs() const {
  return count_ <= state_.logged_max.load(std::memory_order_relaxed) &&
         core_.write_cache.takes(count_) && !core_.engine.heap_scarce();
}

// Returns whether new blocks go straight to the device: the next fsync is too large for the intent
// log, and the device can write them while the kernel sends more.
bool WriteJob::passes_cache() const {
  const uint64_t most = state_.logged_max.load(std::memory_order_relaxed);
  return most > 0 && count_ > most;
}

// Also maps the block before the range, because an append goes right behind it.
Result<void> WriteJob::map() {
  const uint64_t before = first_ > 0 ? 1 : 0;
  SFS_ASSIGN(pieces_,
             core_.engine.map(attributes_.id, FileBlock{first_ - before}, count_ + before));
  if (before == 0 || pieces_.empty()) return {};
  meta::Piece& head = pieces_.front();
  if (!head.hole) {
    near_ = BlockNo{head.block.value + 1};
    head.block = *near_;
  }
  head.first = FileBlock{first_};
  if (--head.length == 0) pieces_.erase(pieces_.begin());
  return {};
}

Result<void> WriteJob::find_slots() {
  const auto parts = std::ranges::count_if(pieces_, &meta::Piece::unwritten);
  if (parts == 0 || !splits_) return {};
  const uint64_t slots = 2 * static_cast<uint64_t>(parts) + 1;
  auto room = slot_room(core_, slots);
  lacks_slots_ = !room && room.error().code == ENOSPC;
  if (!room) return room.error();
  slots_ = std::move(room).value();
  return {};
}

const meta::Piece& WriteJob::piece_at(uint64_t page) const {
  const auto it = std::find_if(pieces_.begin(), pieces_.end(), [&](const meta::Piece& piece) {
    return first_ + page < piece.first.value + piece.length;
  });
  SFS_ASSERT(it != pieces_.end());
  return *it;
}

// Makes the only copy of the write path, which computes the checksums too. An aligned request is
// not copied; its checksums are computed while the device writes.
Result<void> WriteJob::prepare() {
  if (core_.checksums.enabled()) crcs_.resize(count_);
  if (blockdev::block_aligned(in_.data()) && offset_ % kBlockSize == 0 &&
      in_.size() % kBlockSize == 0) {
    image_ = in_;
    checksums_wait_ = core_.checksums.enabled();
    return {};
  }
  const Bytes image = blockdev::scratch(count_ * kBlockSize);
  image_ = image;
  for (uint64_t page = 0; page < count_; ++page) {
    SFS_TRY(fill_slot(page, image.subspan(page * kBlockSize, kBlockSize)));
  }
  return {};
}

Result<void> WriteJob::fill_slot(uint64_t page, Bytes slot) {
  const uint64_t block_start = (first_ + page) * kBlockSize;
  const uint64_t from = std::max(offset_, block_start);
  const uint64_t to = std::min(offset_ + in_.size(), block_start + kBlockSize);
  const ConstBytes piece = in_.subspan(from - offset_, to - from);
  if (piece.size() < kBlockSize) {
    SFS_TRY(load_old(page, slot));
    std::memcpy(slot.data() + (from - block_start), piece.data(), piece.size());
    if (core_.checksums.enabled()) crcs_[page] = Checksums::of(slot);
  } else if (core_.checksums.enabled()) {
    crcs_[page] = Checksums::copy(slot, piece);
  } else {
    std::memcpy(slot.data(), piece.data(), piece.size());
  }
  return {};
}

// Reads the present content of a block of the file, with zeroes past the file's end, where a crash
// may have left bytes that were never part of the file.
Result<void> WriteJob::load_old(uint64_t page, Bytes slot) {
  const uint64_t block_start = (first_ + page) * kBlockSize;
  const meta::Piece& piece = piece_at(page);
  const uint64_t kept =
      attributes_.size > block_start ? std::min(attributes_.size - block_start, kBlockSize) : 0;
  if (piece.hole || piece.unwritten || kept == 0) {
    std::memset(slot.data(), 0, slot.size());
    return {};
  }
  const BlockNo block{piece.block.value + first_ + page - piece.first.value};
  if (may_wait()) {
    blockdev::IoBatch batch(core_.device);
    batch.read(block, slot);
    SFS_TRY(batch.wait());
  } else if (!core_.write_cache.read_cached(block, slot)) {
    return would_wait();
  }
  SFS_TRY(core_.checksums.verify(attributes_.id, block, slot, false));
  std::memset(slot.data() + kept, 0, kBlockSize - kept);
  return {};
}

Result<void> WriteJob::place_or_reclaim() {
  const std::optional<BlockNo> near = near_;
  Result<void> done = place();
  if (done.ok() || done.error().code != ENOSPC) return done;
  cancel(false);
  if (!may_wait()) return would_wait();
  stays_ = true;
  core_.reclaim([&] {
    near_ = near;
    done = place();
    if (!done.ok()) cancel(false);
    return done.ok() || done.error().code != ENOSPC;
  });
  return done;
}

Result<void> WriteJob::place() {
  cursor_ = {};
  for (const meta::Piece& piece : pieces_) {
    const uint64_t page = piece.first.value - first_;
    if (piece.hole) {
      SFS_TRY(allocate(page, piece.length));
    } else if (piece.unwritten) {
      convert(page, piece.length, piece.block);
    } else {
      overwrite(page, piece.length, piece.block);
    }
  }
  return {};
}

ConstBytes WriteJob::image(uint64_t page, uint64_t count) const {
  return image_.subspan(page * kBlockSize, count * kBlockSize);
}

void WriteJob::convert(uint64_t page, uint64_t count, BlockNo block) {
  converted_.push_back({block, count});
  add_segments(page, count, block, false);
  near_ = BlockNo{block.value + count};
}

// Overwrites in place, with two exceptions, if META has room. If a restore may still read the
// block, the write takes a new one, because that costs less than the flush that would settle the
// condition. With an intent log see logs(). A block that the cache would replace stays in any case:
// no record names it.
bool WriteJob::moves(uint64_t page, uint64_t count, BlockNo block) const {
  if (!core_.epochs.forbids(block, image(page, count)) && !logs()) return false;
  return !core_.write_cache.holds(block, count);
}

void WriteJob::overwrite(uint64_t page, uint64_t count, BlockNo block) {
  if (stays_ || !moves(page, count, block) || core_.engine.heap_scarce()) {
    add_segments(page, count, block, true);
    near_ = BlockNo{block.value + count};
    return;
  }
  for (const uint64_t end = page + count; page < end;) {
    uint64_t step = 1;
    const bool moved = moves(page, 1, block);
    while (page + step < end && moves(page + step, 1, BlockNo{block.value + step}) == moved) ++step;
    if (!moved || !move(page, step, block)) {
      add_segments(page, step, block, true);
      near_ = BlockNo{block.value + step};
    }
    page += step;
    block.value += step;
  }
}

// Returns false, and has done nothing, if no block is free.
bool WriteJob::move(uint64_t page, uint64_t count, BlockNo old) {
  const PStreamId home = core_.placement.plain_route(vstream_);
  std::vector<meta::BlockRun> runs;
  for (uint64_t left = count; left > 0;) {
    const auto run = core_.engine.blocks().reserve(left, home, near_);
    if (!run) {
      for (const meta::BlockRun& each : runs) core_.engine.blocks().cancel(each);
      return false;
    }
    runs.push_back(*run);
    left -= run->count;
    near_ = BlockNo{run->first.value + run->count};
  }
  for (const meta::BlockRun& run : runs) {
    reserved_.push_back(run);
    add_moved(page, run.count, run.first, old);
    page += run.count;
    old.value += run.count;
  }
  return true;
}

// The device's tag depends on each page's shape. The place depends on the file only, so that
// extents stay long.
Result<void> WriteJob::allocate(uint64_t page, uint64_t count) {
  const PStreamId home = core_.placement.plain_route(vstream_);
  while (count > 0) {
    SFS_ASSIGN(const meta::BlockRun run, core_.engine.blocks().reserve(count, home, near_));
    reserved_.push_back(run);
    add_segments(page, run.count, run.first, false);
    near_ = BlockNo{run.first.value + run.count};
    page += run.count;
    count -= run.count;
  }
  return {};
}

placement::PageRun WriteJob::run(uint64_t page, uint64_t count, BlockNo block) const {
  return {vstream_,
          static_cast<uint32_t>(count_),
          static_cast<uint32_t>(page),
          static_cast<uint32_t>(count),
          block,
          learning::file_place(first_)};
}

void WriteJob::add_segments(uint64_t page, uint64_t count, BlockNo block, bool overwrite) {
  runs_.clear();
  core_.placement.route_run(run(page, count, block), overwrite, cursor_, runs_);
  for (const placement::RoutedRun& part : runs_) {
    const BlockNo first{block.value + part.offset_pages - page};
    segments_.push_back({part.offset_pages, part.pages, first, part.stream, part.age, {}});
  }
}

// The pStream depends on the age of the data that is replaced.
void WriteJob::add_moved(uint64_t page, uint64_t count, BlockNo block, BlockNo old) {
  const size_t before = segments_.size();
  add_segments(page, count, old, true);
  for (size_t i = before; i < segments_.size(); ++i) {
    Segment& segment = segments_[i];
    segment.moved_from = segment.block;
    segment.block = BlockNo{block.value + segment.block.value - old.value};
  }
}

Result<void> WriteJob::begin_overwrite() {
  if (!core_.checksums.enabled()) return {};
  // A restore may still look at a block that was written and has become unwritten again.
  for (const meta::Piece& piece : pieces_) {
    const uint64_t page = piece.first.value - first_;
    if (piece.unwritten && !core_.epochs.logs())
      SFS_TRY(core_.epochs.before_overwrite(piece.block, image(page, piece.length)));
  }
  std::vector<meta::Piece> overwritten;
  for (const Segment& segment : segments_) {
    if (segment.is_new()) continue;
    meta::Piece& piece = overwritten.emplace_back();
    piece.first = FileBlock{first_ + segment.page};
    piece.length = segment.count;
    piece.block = segment.block;
  }
  if (overwritten.empty()) return {};
  SFS_TRY(core_.engine.begin_overwrite(attributes_.id, overwritten));
  // The checksums are marked first, so that no commit makes a condition of these blocks any more.
  for (const meta::Piece& piece : overwritten) {
    const uint64_t page = piece.first.value - first_;
    if (core_.write_cache.holds(piece.block, piece.length)) continue;  // no record names it
    SFS_TRY(core_.epochs.before_overwrite(piece.block, image(page, piece.length)));
  }
  return {};
}

Result<void> WriteJob::submit() {
  blockdev::IoBatch batch(core_.device);
  if (core_.device.joins()) {
    const PStreamId beginning =
        core_.placement.epoch_route(vstream_, segments_.front().block, segments_.front().stream);
    for (Segment& each : segments_)
      each.stream = core_.device.of(each.stream, each.count, beginning);
  }
  for (size_t i = 0; i < segments_.size();) {
    const Segment& head = segments_[i];
    const blockdev::Placement placement = core_.device.placement(head.stream);
    uint64_t count = head.count;
    for (++i; i < segments_.size(); ++i) {
      const Segment& next = segments_[i];
      const bool follows = next.block.value == head.block.value + count;
      const bool alike =
          next.is_new() == head.is_new() && core_.device.placement(next.stream) == placement;
      if (!follows || !alike) break;
      count += next.count;
    }
    write(batch, head, count);
  }
  if (refused_) return would_wait();
  if (checksums_wait_) {
    if (count_ >= kPagesWorthACall) batch.submit();
    Checksums::of_each(image_, crcs_);
  }
  return batch.wait();
}

void WriteJob::write(blockdev::IoBatch& batch, const Segment& head, uint64_t count) {
  const ConstBytes bytes = image(head.page, count);
  const blockdev::WriteTag tag{core_.device.placement(head.stream), core_.placement.told(vstream_)};
  const bool fresh = head.is_new() && !passes_cache();
  if (core_.write_cache.put(attributes_.id, head.block, bytes, tag, fresh)) return;
  all_cached_ = false;
  if (may_wait())
    batch.write(head.block, bytes, tag);
  else
    refused_ = true;
}

// Tells the write cache which blocks are replaced, so that a log entry can hold the difference.
void WriteJob::tell_cache() const {
  for (const Segment& segment : segments_) {
    const std::optional<BlockNo> old = segment.moved_from;
    if (!old) continue;
    for (uint64_t i = 0; i < segment.count; ++i)
      core_.write_cache.builds_on(BlockNo{segment.block.value + i}, BlockNo{old->value + i});
  }
}

meta::WriteResult WriteJob::result() const {
  meta::WriteResult out;
  out.end_offset = end_offset_;
  for (const Segment& segment : segments_) {
    if (core_.checksums.enabled()) {
      for (uint64_t i = 0; i < segment.count; ++i) {
        out.checksums.push_back({BlockNo{segment.block.value + i}, crcs_[segment.page + i]});
      }
    }
    if (!segment.is_new()) continue;
    auto* last = out.added.empty() ? nullptr : &out.added.back();
    const FileBlock first{first_ + segment.page};
    if (last != nullptr && last->first.value + last->length == first.value &&
        last->block.value + last->length == segment.block.value) {
      last->length += segment.count;
    } else {
      out.added.push_back({first, segment.block, segment.count, vstream_});
    }
  }
  return out;
}

// The epoch is read after the device has completed the write, so its flush starts later.
Result<void> WriteJob::finish() {
  meta::WriteResult done = result();
  done.epoch = core_.epochs.epoch();
  done.times = times_;
  SFS_TRY(with_meta_units(core_,
                          [&] { return core_.engine.finish_write(attributes_.id, done, slots_); }));
  reserved_.clear();
  all_cached_ ? state_.wrote_in(done.epoch) : on_device(done.epoch);
  core_.epochs.touched(attributes_.id, count_ * kBlockSize, done.epoch,
                       all_cached_ ? Epochs::Where::kCache : Epochs::Where::kDevice);
  tell_cache();
  report_write();
  return {};
}

void WriteJob::report_write() const {
  const uint32_t request = core_.trace.next_request();
  const VStreamId shown = core_.placement.shown(vstream_);
  const VStreamId context = attributes_.vstream_hinted
                                ? core_.placement.shown(inferred_vstream(core_.placement, state_))
                                : shown;
  for (const Segment& s : segments_) {
    const placement::PageRun written = run(s.page, s.count, s.block);
    core_.placement.wrote(written, s.stream, s.age);
    core_.trace.record(trace::TraceOp::kWrite, s.block, s.count, shown, context, request, s.stream,
                       written.file_place);
  }
}

// Gives up a write. Blocks that may have reached the device stay live there until they are trimmed.
void WriteJob::cancel(bool submitted) {
  meta::BlockAllocator& blocks = core_.engine.blocks();
  for (const meta::BlockRun& run : reserved_) submitted ? blocks.discard(run) : blocks.cancel(run);
  for (const meta::BlockRun& run : converted_) core_.write_cache.discard(run.first, run.count);
  reserved_.clear();
  converted_.clear();
  segments_.clear();
}

}  // namespace streamfs::data
