// Rebuilding META from the data device: the newest snapshot, then every chunk after it.
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

#include "base/checksum.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/record.h"
#include "fuse-fs/meta/snapshot.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

// Reads chunks in order from a snapshot's start until one is missing or torn.
class ChunkReader {
 public:
  ChunkReader(const DataLabel& label, const SnapshotHeader& snapshot, LogDevice& device)
      : label_(label), device_(device), next_(snapshot.first_chunk), at_(snapshot.first_block) {}

  // The next chunk's payload, nothing at the end.
  Result<std::optional<std::vector<std::byte>>> next() {
    for (const uint64_t at : {at_, uint64_t{0}}) {  // a chunk never crosses the end of the area
      SFS_ASSIGN(auto payload, read_at(at));
      if (payload) return payload;
    }
    return std::optional<std::vector<std::byte>>{};
  }

 private:
  Result<std::optional<std::vector<std::byte>>> read_at(uint64_t at) {
    std::optional<std::vector<std::byte>> nothing;
    std::vector<std::byte> bytes(kBlockSize);
    SFS_TRY(device_.read(BlockNo{label_.log_first_block + at}, bytes));
    LogChunkHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (!ours(header)) return nothing;
    const uint64_t blocks = div_round_up(sizeof(header) + header.payload_bytes, kBlockSize);
    if (at + blocks > label_.log_blocks) return nothing;
    bytes.resize(blocks * kBlockSize);
    SFS_TRY(device_.read(BlockNo{label_.log_first_block + at}, bytes));
    bytes.resize(sizeof(header) + header.payload_bytes);
    bytes.erase(bytes.begin(), bytes.begin() + sizeof(header));
    if (crc32c(bytes) != header.payload_checksum) return nothing;
    ++next_;
    at_ = (at + blocks) % label_.log_blocks;
    return std::optional(std::move(bytes));
  }

  bool ours(LogChunkHeader header) const {
    const uint32_t checksum = std::exchange(header.checksum, 0);
    return header.magic == kChunkMagic && header.number == next_ &&
           checksum == crc32c(std::as_bytes(std::span(&header, 1))) &&
           std::ranges::equal(header.uuid, label_.geometry.uuid) &&
           header.payload_bytes <= kChunkBytesMax;
  }

  const DataLabel& label_;
  LogDevice& device_;
  uint64_t next_, at_;
};

// A payload is records, each followed by its bodies.
Result<uint64_t> replay_payload(pmem::Region& region, const Geometry& geometry,
                                const std::vector<std::byte>& payload, uint64_t& last_sequence) {
  std::vector<uint64_t> words(payload.size() / kWordSize);
  if (words.empty()) return 0;  // and nowhere to copy from
  std::memcpy(words.data(), payload.data(), words.size() * kWordSize);
  uint64_t records = 0;
  for (std::span<const uint64_t> rest(words); !rest.empty(); ++records) {
    const auto view = RecordView::parse(rest);
    if (!view || view->sequence().value > kMaxSequence || !view->in_bounds(geometry))
      return Error{EIO, "the metadata log is damaged"};
    rest = rest.subspan(view->words().size());
    for (const uint64_t packed : view->bodies()) {
      const BodyView body = unpack_body(packed);
      if (body.words > rest.size()) return Error{EIO, "the metadata log is damaged"};
      region.store(body.offset, rest.first(body.words));
      rest = rest.subspan(body.words);
    }
    view->apply(region, geometry);
    last_sequence = view->sequence().value;
  }
  return records;
}

// Label, snapshots and log lie one after another, before the data.
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

}  // namespace

Result<Restored> restore_from_log(pmem::Region& region, const DataLabel& label, LogDevice& device) {
  if (label.log_blocks == 0) return Error{ENODATA, "this filesystem has no metadata log"};
  if (region.size() < label.geometry.meta_size) {
    return Error{ENOSPC, "META has " + std::to_string(region.size()) + " bytes, " +
                             std::to_string(label.geometry.meta_size) + " are needed"};
  }
  SFS_ASSIGN(const Geometry geometry, Geometry::from(label.geometry));
  if (label.magic == kDataMagic && !places_make_sense(label))
    return Error{EIO, "the label of DATA is damaged"};
  SFS_ASSIGN(const SnapshotHeader snapshot, load_snapshot(region, geometry, label, device));
  Restored restored{snapshot.generation, 0};
  uint64_t last_sequence = snapshot.sequence;
  for (ChunkReader chunks(label, snapshot, device);;) {
    SFS_ASSIGN(const auto payload, chunks.next());
    if (!payload) break;
    SFS_ASSIGN(const uint64_t records, replay_payload(region, geometry, *payload, last_sequence));
    restored.records += records;
  }
  region.store_word(kWatermarkOffset, std::max(last_sequence, snapshot.sequence));
  region.flush(0, region.size());
  region.fence();
  SFS_TRY(region.sync());
  Superblock super = label.geometry;
  super.clean = 0;
  SFS_TRY(store_superblock(region, super));
  SFS_TRY(region.sync());
  return restored;
}

}  // namespace streamfs::meta
