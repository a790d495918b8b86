#include "fuse-fs/meta/metadata_log.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/snapshot.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

uint64_t chunk_blocks(uint64_t payload) {
  return div_round_up(sizeof(LogChunkHeader) + payload, kBlockSize);
}

}  // namespace

MetadataLog::MetadataLog(pmem::Region& region, const Geometry& geometry, Journal& journal,
                         LogDevice& device, const DataLabel& label)
    : region_(region), geometry_(geometry), journal_(journal), device_(device), label_(label) {}

MetadataLog::~MetadataLog() {
  journal_.set_sink({});
}

Result<std::unique_ptr<MetadataLog>> MetadataLog::start(pmem::Region& region,
                                                        const Geometry& geometry, Journal& journal,
                                                        LogDevice& device, const DataLabel& label) {
  if (label.log_blocks == 0) return Error{ENODATA, "this filesystem has no metadata log"};
  std::unique_ptr<MetadataLog> log(new MetadataLog(region, geometry, journal, device, label));
  journal.set_sink(
      [raw = log.get()](TxId tx, ConstBytes record, std::span<const ConstBytes> bodies) {
        raw->append(tx, record, bodies);
      });
  const MutexLock lock(log->ship_mutex_);
  SFS_ASSIGN(log->snapshot_generation_, newest_snapshot_generation(label, device));
  // Above every chunk of the run before, so that none of those can follow ours.
  log->next_chunk_ = (log->snapshot_generation_ + 1) << 32U;
  SFS_TRY(log->take_snapshot());
  return log;
}

void MetadataLog::append(TxId tx, ConstBytes record, std::span<const ConstBytes> bodies) {
  Pending pending{tx.value, {record.begin(), record.end()}};
  for (const ConstBytes body : bodies) {
    pending.bytes.insert(pending.bytes.end(), body.begin(), body.end());
  }
  const MutexLock lock(pending_mutex_);
  pending_.push_back(std::move(pending));
}

Result<TxId> MetadataLog::ship() {
  const MutexLock lock(ship_mutex_);
  const uint64_t target = journal_.quiesce().value;
  std::vector<Pending> records;
  {
    const MutexLock pending_lock(pending_mutex_);
    std::ranges::sort(pending_, {}, &Pending::sequence);
    const auto end = std::ranges::upper_bound(pending_, target, {}, &Pending::sequence);
    records.assign(std::move_iterator(pending_.begin()), std::move_iterator(end));
    pending_.erase(pending_.begin(), end);
  }
  const auto written = write_pending(records);
  if (!written.ok()) {
    const MutexLock pending_lock(pending_mutex_);
    pending_.insert(pending_.end(), std::move_iterator(records.begin()),
                    std::move_iterator(records.end()));
    return written.error();
  }
  shipped_ = target;
  return TxId{target};
}

Result<void> MetadataLog::write_pending(const std::vector<Pending>& records) {
  std::vector<std::byte> chunk(sizeof(LogChunkHeader));
  uint64_t last = shipped_;
  for (const Pending& record : records) {
    if (chunk.size() + record.bytes.size() > kChunkBytesMax) {
      SFS_TRY(write_chunk(chunk, last));
      chunk.resize(sizeof(LogChunkHeader));
    }
    chunk.insert(chunk.end(), record.bytes.begin(), record.bytes.end());
    last = record.sequence;
  }
  if (chunk.size() == sizeof(LogChunkHeader)) return {};
  return write_chunk(chunk, last);
}

// `chunk` has room for the header at its start.
Result<void> MetadataLog::write_chunk(std::vector<std::byte>& chunk, uint64_t last_sequence) {
  const uint64_t payload = chunk.size() - sizeof(LogChunkHeader);
  const uint64_t blocks = chunk_blocks(payload);
  if (head_block_ + blocks - snapshot_at_ > label_.log_blocks / 2) SFS_TRY(take_snapshot());
  if (head_block_ % label_.log_blocks + blocks > label_.log_blocks) {
    head_block_ = round_up(head_block_, label_.log_blocks);  // a chunk never crosses the end
  }
  LogChunkHeader header{};
  header.magic = kChunkMagic;
  header.number = next_chunk_;
  header.last_sequence = last_sequence;
  header.payload_bytes = payload;
  std::ranges::copy(geometry_.super().uuid, header.uuid);
  header.payload_checksum = crc32c(std::span(chunk).subspan(sizeof(header)));
  header.checksum = crc32c(std::as_bytes(std::span(&header, 1)));
  std::memcpy(chunk.data(), &header, sizeof(header));
  chunk.resize(blocks * kBlockSize);
  const BlockNo at{label_.log_first_block + head_block_ % label_.log_blocks};
  SFS_TRY(device_.write(at, chunk));
  bytes_written_.fetch_add(chunk.size(), std::memory_order_relaxed);
  head_block_ += blocks;
  ++next_chunk_;
  return {};
}

void MetadataLog::made_durable(TxId shipped) {
  uint64_t known = durable_.load(std::memory_order_relaxed);
  while (known < shipped.value && !durable_.compare_exchange_weak(known, shipped.value)) {
  }
}

// Fuzzy: records may be committed meanwhile, but each of those is in a chunk that comes after.
Result<void> MetadataLog::take_snapshot() {
  SnapshotHeader header{};
  header.generation = snapshot_generation_ + 1;
  header.sequence = journal_.quiesce().value;
  header.first_chunk = next_chunk_;
  header.first_block = head_block_ % label_.log_blocks;
  SFS_ASSIGN(const uint64_t bytes, write_snapshot(region_, geometry_, label_, header, device_));
  bytes_written_.fetch_add(bytes, std::memory_order_relaxed);
  ++snapshot_generation_;
  snapshot_at_ = head_block_;
  made_durable(TxId{header.sequence});
  return {};
}

void MetadataLog::grow(const DataLabel& label) {
  const MutexLock lock(ship_mutex_);
  label_ = label;
}

Result<void> MetadataLog::snapshot() {
  SFS_TRY(ship());
  const MutexLock lock(ship_mutex_);
  return take_snapshot();
}

}  // namespace streamfs::meta
