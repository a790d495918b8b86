// Rebuilds META from the data device: the chosen snapshot, then every chunk after it.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/meta/conditional_record.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/log_reader.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/record.h"
#include "fuse-fs/meta/snapshot.h"
#include "fuse-fs/meta/snapshot_choice.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

// Replays records, each followed by its bodies, up to the first one that does not count.
class Replay {
 public:
  // Replays the records after `begin` and before `end`. The snapshot has those up to `begin`.
  Replay(pmem::Region& region, const Geometry& geometry, uint64_t begin, uint64_t end)
      : region_(region), geometry_(geometry), begin_(begin), end_(end) {}

  Result<void> add(const std::vector<std::byte>& payload) {
    std::vector<uint64_t> words(payload.size() / kWordSize);
    if (words.empty()) return {};  // memcpy() must not get null
    std::memcpy(words.data(), payload.data(), words.size() * kWordSize);
    for (std::span<const uint64_t> rest(words); !rest.empty() && !ended_;) {
      const auto view = RecordView::parse(rest);
      if (!view || view->sequence().value > kMaxSequence || !view->in_bounds(geometry_))
        return Error{EIO, "the metadata log is damaged"};
      ended_ = view->sequence().value >= end_;
      if (!ended_) SFS_TRY(apply(*view, rest));
    }
    return {};
  }
  uint64_t records() const { return records_; }
  uint64_t last_sequence() const { return last_sequence_; }
  bool ended() const { return ended_; }

 private:
  Result<void> apply(const RecordView& view, std::span<const uint64_t>& rest) {
    const bool is_new = view.sequence().value > begin_;
    rest = rest.subspan(view.words().size());
    if (is_new) zero_units(view);
    for (const uint64_t packed : view.bodies()) {
      const BodyView body = unpack_body(packed);
      if (body.words > rest.size()) return Error{EIO, "the metadata log is damaged"};
      if (is_new) region_.store(body.offset, rest.first(body.words));
      rest = rest.subspan(body.words);
    }
    if (!is_new) return {};
    view.apply(region_, geometry_);
    last_sequence_ = view.sequence().value;
    ++records_;
    return {};
  }

  // Zeroes the heap units that a record gives to an object, as Heap::take() did without a record.
  void zero_units(const RecordView& view) {
    for (const uint64_t unit : view.units_taken(geometry_))
      region_.store_zeroes(geometry_.unit_offset(unit), kUnitSize);
  }

  pmem::Region& region_;
  const Geometry& geometry_;
  const uint64_t begin_, end_;
  uint64_t records_ = 0, last_sequence_ = 0;
  bool ended_ = false;
};

// Returns whether label, snapshots and log lie one after another, before the data.
bool places_make_sense(const DataLabel& label) {
  const uint64_t end = label.geometry.first_data_block;
  uint64_t next = 1;
  for (const auto& [first, count] :
       {std::pair(label.snapshot_first_block[0], label.snapshot_blocks),
        std::pair(label.snapshot_first_block[1], label.snapshot_blocks),
        std::pair(label.log_first_block, label.log_blocks)}) {
    if (first < next || first > end || count > end - first) return false;
    next = first + count;
  }
  return true;
}

Error no_snapshot(const SnapshotChoice& choice) {
  const std::string damage = choice.damage.empty() ? "" : " (" + choice.damage + ")";
  if (!choice.found_header) return Error{ENODATA, "DATA holds no snapshot of META" + damage};
  return Error{EIO, "no snapshot of META on DATA is whole" + damage};
}

}  // namespace

Result<Restored> restore_from_log(pmem::Region& region, const DataLabel& label, LogDevice& device) {
  if (label.log_blocks == 0) return Error{ENODATA, "this filesystem has no metadata log"};
  if (region.size() < label.geometry.meta_size) {
    return Error{ENOSPC, "META has " + std::to_string(region.size()) + " bytes, " +
                             std::to_string(label.geometry.meta_size) + " are needed"};
  }
  SFS_ASSIGN(const Geometry geometry, Geometry::from(label.geometry));
  if (label.magic == wire::kDataMagic && !places_make_sense(label))
    return Error{EIO, "the label of DATA is damaged"};
  SFS_ASSIGN(const SnapshotChoice choice, choose_snapshot(geometry, label, device));
  const SnapshotHeader& snapshot = choice.snapshot;
  if (snapshot.generation == 0) return no_snapshot(choice);
  SFS_TRY(load_snapshot(region, geometry, label, snapshot, device));
  SFS_ASSIGN(const uint64_t end, replay_end(label, snapshot, device));
  Replay replay(region, geometry, snapshot.sequence, end);
  for (LogReader chunks(label, snapshot, device); !replay.ended();) {
    SFS_ASSIGN(const auto chunk, chunks.next());
    if (!chunk) break;
    SFS_TRY(replay.add(chunk->records));
  }
  region.store_word(kWatermarkOffset, std::max(replay.last_sequence(), snapshot.sequence));
  region.fence(region.flush(0, region.size()));
  SFS_TRY(region.sync());
  Superblock super = label.geometry;
  super.clean = 0;
  super.log_end = 0;
  SFS_TRY(store_superblock(region, super));
  SFS_TRY(region.sync());
  return Restored{snapshot.generation, replay.records(), choice.damage, replay.ended()};
}

}  // namespace streamfs::meta
