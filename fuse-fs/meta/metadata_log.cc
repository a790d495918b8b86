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
#include "fuse-fs/meta/log_reader.h"
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
    : region_(region),
      geometry_(geometry),
      journal_(journal),
      device_(device),
      used_pages_(region),
      label_(label) {}

MetadataLog::~MetadataLog() {
  journal_.set_sink({});
}

Result<std::unique_ptr<MetadataLog>> MetadataLog::start(pmem::Region& region,
                                                        const Geometry& geometry, Journal& journal,
                                                        LogDevice& device, const DataLabel& label) {
  SFS_ASSIGN(auto log, attach(region, geometry, journal, device, label, 0));
  SFS_TRY(log->begin());
  return log;
}

Result<std::unique_ptr<MetadataLog>> MetadataLog::attach(pmem::Region& region,
                                                         const Geometry& geometry, Journal& journal,
                                                         LogDevice& device, const DataLabel& label,
                                                         uint64_t end) {
  if (label.log_blocks == 0) return Error{ENODATA, "this filesystem has no metadata log"};
  std::unique_ptr<MetadataLog> log(new MetadataLog(region, geometry, journal, device, label));
  journal.set_sink([raw = log.get()](TxId tx, ConstBytes record, std::span<const ConstBytes> bodies,
                                     std::span<const DataCondition> conditions) {
    raw->append(tx, record, bodies, conditions);
  });
  const MutexLock lock(log->ship_mutex_);
  SFS_ASSIGN(const SnapshotHeader newest, newest_snapshot(label, device));
  log->snapshot_generation_ = newest.generation;
  if (end != 0) log->go_on(newest, LogEnd::unpacked(end));
  return log;
}

void MetadataLog::go_on(const SnapshotHeader& snapshot, const LogEnd& end) {
  const bool is_known = snapshot.generation != 0 && end.is_after(snapshot.generation);
  if (!is_known || end.blocks > label_.log_blocks) return;
  next_chunk_ = snapshot.first_chunk + end.chunks;
  snapshot_chunk_ = snapshot.first_chunk;
  head_block_ = snapshot.first_block + end.blocks;
  snapshot_at_ = snapshot.first_block;
  shipped_ = settled_ = journal_.last().value;
  durable_ = shipped_;
  begun_ = true;
}

Result<void> MetadataLog::begin() {
  if (begun_.load(std::memory_order_acquire)) return {};
  const MutexLock lock(ship_mutex_);
  return begin_locked();
}

Result<void> MetadataLog::begin_locked() {
  if (begun_.load(std::memory_order_acquire)) return {};
  SFS_TRY(pass_old_log());
  return take_snapshot();
}

// A restore believes it until the snapshot counts.
Result<void> MetadataLog::pass_old_log() {
  SFS_ASSIGN(const SnapshotHeader newest, newest_snapshot(label_, device_));
  next_chunk_ = first_number(geometry_.super(), newest.generation);
  if (newest.generation == 0) return {};
  LogReader old(label_, newest, device_);
  for (bool more = true; more;) {
    SFS_ASSIGN(const auto chunk, old.next());
    more = chunk.has_value();
  }
  snapshot_at_ = newest.first_block;
  head_block_ = snapshot_at_ + old.blocks();
  return {};
}

uint64_t MetadataLog::end() {
  if (!begun_.load(std::memory_order_acquire)) return 0;
  const MutexLock lock(ship_mutex_);
  return LogEnd{snapshot_generation_, next_chunk_ - snapshot_chunk_, head_block_ - snapshot_at_}
      .packed();
}

void MetadataLog::append(TxId tx, ConstBytes record, std::span<const ConstBytes> bodies,
                         std::span<const DataCondition> conditions) {
  Pending pending{tx.value, {record.begin(), record.end()}, {conditions.begin(), conditions.end()}};
  for (const ConstBytes body : bodies) {
    pending.bytes.insert(pending.bytes.end(), body.begin(), body.end());
  }
  const MutexLock lock(pending_mutex_);
  pending_.push_back(std::move(pending));
  for (const DataCondition& condition : conditions) add_condition(condition, tx.value);
  conditional_count_.store(conditional_.size(), std::memory_order_release);
}

// What an earlier one looks at has not changed since, so that one says it for both: with the same
// checksum, where the shorter of them has zeroes after it.
void MetadataLog::add_condition(const DataCondition& condition, uint64_t sequence) {
  Unsettled& known =
      conditional_.try_emplace(condition.block.value, Unsettled{sequence, condition}).first->second;
  const uint32_t length = std::max(known.condition.length, condition.length);
  known = {sequence, condition};
  known.condition.length = length;
}

Result<MetadataLog::Shipped> MetadataLog::ship() {
  const MutexLock lock(ship_mutex_);
  SFS_TRY(begin_locked());
  return ship_locked();
}

Result<MetadataLog::Shipped> MetadataLog::ship_to_settle() {
  const MutexLock lock(ship_mutex_);
  SFS_TRY(begin_locked());
  SFS_ASSIGN(Shipped shipped, ship_locked());
  if (settled_ < durable_.load(std::memory_order_acquire)) {
    SFS_TRY(write_chunk({std::vector<std::byte>(sizeof(LogChunkHeader)), {}}, shipped_));
    shipped.settled = TxId{settled_};
  }
  return shipped;
}

Result<MetadataLog::Shipped> MetadataLog::ship_locked() {
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
  shipped_ = std::max(shipped_, target);  // a snapshot may have shipped more
  return Shipped{TxId{target}, TxId{settled_}};
}

Result<void> MetadataLog::write_pending(const std::vector<Pending>& records) {
  const auto empty = [] { return Chunk{std::vector<std::byte>(sizeof(LogChunkHeader)), {}}; };
  Chunk chunk = empty();
  uint64_t last = shipped_;
  for (const Pending& record : records) {
    const size_t conditions = chunk.conditions.size() + record.conditions.size();
    if (chunk.bytes.size() + record.bytes.size() + conditions * sizeof(LogCondition) >
        kChunkBytesMax) {
      SFS_TRY(write_chunk(std::exchange(chunk, empty()), last));
    }
    chunk.bytes.insert(chunk.bytes.end(), record.bytes.begin(), record.bytes.end());
    for (const DataCondition& each : record.conditions)
      chunk.conditions.push_back({record.sequence, each.block.value, each.checksum, each.length});
    last = record.sequence;
  }
  if (chunk.bytes.size() == sizeof(LogChunkHeader)) return {};
  return write_chunk(std::move(chunk), last);
}

Result<void> MetadataLog::write_chunk(Chunk chunk, uint64_t last_sequence) {
  const ConstBytes conditions = std::as_bytes(std::span(chunk.conditions));
  chunk.bytes.insert(chunk.bytes.end(), conditions.begin(), conditions.end());
  const uint64_t payload = chunk.bytes.size() - sizeof(LogChunkHeader);
  const uint64_t blocks = chunk_blocks(payload);
  if (!snapshotting_ && head_block_ + blocks - snapshot_at_ > snapshot_due())
    SFS_TRY(take_snapshot());
  if (head_block_ % label_.log_blocks + blocks > label_.log_blocks) {
    head_block_ = round_up(head_block_, label_.log_blocks);  // a chunk never crosses the end
  }
  if (head_block_ + blocks - snapshot_at_ > label_.log_blocks)
    return Error{ENOBUFS, "the metadata log is full"};
  LogChunkHeader header{};
  header.magic = kChunkMagic;
  header.number = next_chunk_;
  header.last_sequence = last_sequence;
  header.payload_bytes = static_cast<uint32_t>(payload);
  header.conditions = static_cast<uint32_t>(chunk.conditions.size());
  header.settled = durable_.load(std::memory_order_acquire);
  std::ranges::copy(geometry_.super().uuid, header.uuid);
  header.payload_checksum = crc32c(std::span(chunk.bytes).subspan(sizeof(header)));
  header.checksum = crc32c(std::as_bytes(std::span(&header, 1)));
  std::memcpy(chunk.bytes.data(), &header, sizeof(header));
  chunk.bytes.resize(blocks * kBlockSize);
  const BlockNo at{label_.log_first_block + head_block_ % label_.log_blocks};
  SFS_TRY(device_.write(at, chunk.bytes));
  bytes_written_.fetch_add(chunk.bytes.size(), std::memory_order_relaxed);
  head_block_ += blocks;
  ++next_chunk_;
  settled_ = header.settled;
  return {};
}

void MetadataLog::made_durable(const Shipped& shipped) {
  uint64_t known = durable_.load(std::memory_order_relaxed);
  while (known < shipped.last.value &&
         !durable_.compare_exchange_weak(known, shipped.last.value, std::memory_order_acq_rel)) {
  }
  if (conditional_count_.load(std::memory_order_acquire) == 0) return;
  const MutexLock lock(pending_mutex_);
  std::erase_if(conditional_,
                [&](const auto& each) { return each.second.sequence <= shipped.settled.value; });
  conditional_count_.store(conditional_.size(), std::memory_order_release);
}

bool MetadataLog::forbids(BlockNo first, ConstBytes blocks) const {
  if (conditional_count_.load(std::memory_order_acquire) == 0) return false;
  const uint64_t count = blocks.size() / kBlockSize;
  const auto unmet = [&](const auto& each) {
    const uint64_t at = each.first - first.value;
    if (at >= count) return false;  // before them, too
    return !each.second.condition.met_by(blocks.subspan(at * kBlockSize, kBlockSize));
  };
  const MutexLock lock(pending_mutex_);
  if (conditional_.size() < count) return std::ranges::any_of(conditional_, unmet);
  for (uint64_t i = 0; i < count; ++i) {
    const auto found = conditional_.find(first.value + i);
    if (found != conditional_.end() && unmet(*found)) return true;
  }
  return false;
}

bool MetadataLog::is_conditional(TxId through) const {
  if (conditional_count_.load(std::memory_order_acquire) == 0) return false;
  const MutexLock lock(pending_mutex_);
  return std::ranges::any_of(
      conditional_, [&](const auto& each) { return each.second.sequence <= through.value; });
}

// Fuzzy: records are committed meanwhile, and pages may have caught them. So they are in the log,
// durably, before anybody begins with this snapshot. If they outrun the log, they are made to wait.
Result<void> MetadataLog::take_snapshot() {
  snapshotting_ = true;
  Result<void> done = write_snapshot_beside();
  if (!done.ok() && done.error().code == ENOBUFS) {
    const Journal::Stopped stopped(journal_);
    done = write_snapshot_as_of(journal_.last());
  }
  snapshotting_ = false;
  return done;
}

SnapshotHeader MetadataLog::next_snapshot(TxId as_of) const {
  SnapshotHeader header{};
  header.generation = snapshot_generation_ + 1;
  header.sequence = as_of.value;
  header.first_chunk = next_chunk_;
  header.first_block = head_block_ % label_.log_blocks;
  return header;
}

Result<void> MetadataLog::write_snapshot_beside() {
  const uint64_t from = head_block_;
  // Pages are looked for after that: they hold all that the header says they do.
  const SnapshotHeader begun = next_snapshot(journal_.quiesce());
  const std::vector<uint64_t> pages = used_pages_.look(geometry_);
  SFS_ASSIGN(const SnapshotHeader header,
             write_snapshot_pages(region_, geometry_, label_, begun, device_, pages));
  SFS_TRY(ship_locked());
  return snapshot_written(header, from);
}

Result<void> MetadataLog::write_snapshot_as_of(TxId last) {
  const uint64_t from = head_block_;
  SFS_ASSIGN(const SnapshotHeader header,
             write_snapshot_pages(region_, geometry_, label_, next_snapshot(last), device_,
                                  used_pages_.look(geometry_)));
  return snapshot_written(header, from);
}

Result<void> MetadataLog::snapshot_written(const SnapshotHeader& header, uint64_t from) {
  SFS_TRY(finish_snapshot(header, label_, device_));
  bytes_written_.fetch_add(snapshot_bytes(header), std::memory_order_relaxed);
  ++snapshot_generation_;
  snapshot_chunk_ = header.first_chunk;
  forget_up_to(snapshot_at_);
  snapshot_at_ = from;
  snapshot_blocks_ = snapshot_bytes(header) / kBlockSize;
  begun_.store(true, std::memory_order_release);
  made_durable({TxId{header.sequence}, TxId{header.sequence}});  // its flushes were of the data too
  return {};
}

// The log is live to the device, and copied with the data that it lies among: so it is kept short,
// as far as snapshots cost half of what it does.
uint64_t MetadataLog::snapshot_due() const {
  constexpr uint64_t kLeast = 128;
  const uint64_t half = label_.log_blocks / 2;
  return snapshot_blocks_ == 0 ? half : std::min(half, std::max(kLeast, 2 * snapshot_blocks_));
}

// No snapshot needs what lies before that block: the one that did has been written over. So has
// what is a whole turn behind.
void MetadataLog::forget_up_to(uint64_t block) {
  const uint64_t ring = label_.log_blocks;
  const uint64_t turn_before = head_block_ - std::min(head_block_, ring);
  for (uint64_t at = std::max(needed_from_.value_or(block), turn_before); at < block;) {
    const uint64_t some = std::min(block - at, ring - at % ring);
    device_.forget(BlockNo{label_.log_first_block + at % ring}, some);
    at += some;
  }
  needed_from_ = block;
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
