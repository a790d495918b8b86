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

#include "base/assert.h"
#include "base/checksum.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/log_reader.h"
#include "fuse-fs/meta/snapshot.h"
#include "fuse-fs/meta/snapshot_choice.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

// Returns the blocks from the start of the log after `older` to the start of the log after
// `newest`.
uint64_t blocks_between(const SnapshotHeader& older, const SnapshotHeader& newest, uint64_t ring) {
  const uint64_t apart = (newest.first_block + ring - older.first_block) % ring;
  return apart == 0 && older.first_chunk != newest.first_chunk ? ring : apart;
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
  SFS_ASSIGN(const SnapshotHeaders headers, read_snapshot_headers(label, device));
  log->snapshot_generation_ = headers.newest.generation;
  if (end != 0) log->go_on(headers.newest, headers.older, LogEnd::unpacked(end));
  return log;
}

// Goes on with the log if both snapshots belong to one run of chunk numbers. Otherwise the log
// begins anew.
void MetadataLog::go_on(const SnapshotHeader& newest, const SnapshotHeader& older,
                        const LogEnd& end) {
  const bool is_known = newest.generation != 0 && end.is_after(newest.generation);
  const uint64_t between = blocks_between(older, newest, label_.log_blocks);
  if (!is_known || !share_a_log(older, newest) || between + end.blocks > label_.log_blocks) return;
  next_chunk_ = newest.first_chunk + end.chunks;
  snapshot_chunk_ = newest.first_chunk;
  snapshot_at_ = label_.log_blocks + newest.first_block;
  needed_from_ = snapshot_at_ - between;
  head_block_ = snapshot_at_ + end.blocks;
  shipped_ = settled_ = journal_.last().value;
  durable_ = shipped_;
  begun_.store(true, std::memory_order_release);
}

Result<void> MetadataLog::begin() {
  if (begun_.load(std::memory_order_acquire)) return {};
  const MutexLock lock(ship_mutex_);
  return begin_locked();
}

Result<void> MetadataLog::begin_locked() {
  if (begun_.load(std::memory_order_acquire)) return {};
  SFS_TRY(pass_old_log());
  SFS_TRY(take_snapshot());
  SFS_TRY(take_snapshot());
  begun_.store(true, std::memory_order_release);
  return {};
}

// Moves the head past the old log, because a restore reads it until the first new snapshot is
// valid. The new snapshot overwrites the one that a restore would not choose.
Result<void> MetadataLog::pass_old_log() {
  SFS_ASSIGN(const SnapshotChoice choice, choose_snapshot(geometry_, label_, device_));
  const SnapshotHeader& snapshot = choice.snapshot;
  snapshot_generation_ = choice.next_generation - 1;
  next_chunk_ = first_number(geometry_.super(), choice.next_generation);
  if (snapshot.generation == 0) return {};
  LogReader old(label_, snapshot, device_);
  for (bool more = true; more;) {
    SFS_ASSIGN(const auto chunk, old.next());
    more = chunk.has_value();
  }
  needed_from_ = snapshot_at_ = snapshot.first_block;
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
  conditions_.add(conditions, tx);
  const MutexLock lock(pending_mutex_);
  pending_.push_back(std::move(pending));
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
  if (settled_ >= durable_.load(std::memory_order_acquire)) return shipped;
  Chunk chunk = chunk_of({});
  if (is_due(chunk)) SFS_TRY(take_snapshot());
  while (!has_room(blocks_of(chunk))) SFS_TRY(take_snapshot());
  SFS_TRY(write_chunk(std::move(chunk), shipped_));
  shipped.settled = TxId{settled_};
  return shipped;
}

void MetadataLog::follow_data(BringHome bring_home) {
  const MutexLock lock(ship_mutex_);
  bring_home_ = std::move(bring_home);
}

void MetadataLog::data_is_home(TxId record) {
  uint64_t known = home_.load(std::memory_order_relaxed);
  while (known < record.value &&
         !home_.compare_exchange_weak(known, record.value, std::memory_order_acq_rel)) {
  }
}

// Returns the last record to ship. All records up to it have reached the sink.
uint64_t MetadataLog::ship_target() {
  const uint64_t committed = journal_.quiesce().value;
  return bring_home_ ? std::min(committed, home_.load(std::memory_order_acquire)) : committed;
}

Result<MetadataLog::Shipped> MetadataLog::ship_locked() {
  const uint64_t target = ship_target();
  {
    const MutexLock lock(pending_mutex_);
    std::ranges::sort(pending_, {}, &Pending::sequence);
  }
  SFS_TRY(bring_home_ ? ship_group(target) : ship_chunks(target));
  shipped_ = std::max(shipped_, target);  // a snapshot may have shipped more
  return Shipped{TxId{target}, TxId{settled_}};
}

// Ships all pending records up to `last_sequence` as one group. A snapshot that is due comes before
// the group and ships it, because no snapshot may begin inside a group.
// Errors: ENOBUFS, the ring has no room for the whole group beside the log that a snapshot in
// progress needs. Nothing was written then.
Result<void> MetadataLog::ship_group(uint64_t last_sequence) {
  const uint64_t end = end_of_group(last_sequence);
  if (end == head_block_) return {};
  SFS_TRY(chunk_failure_);
  if (!snapshotting_ && is_due_before(end)) return take_snapshot();
  if (!reaches(end)) return Error{ENOBUFS, "a group does not fit the metadata log"};
  return ship_chunks(last_sequence);
}

// Ships in the order of sequences, although a snapshot between two chunks ships records too:
// records leave the queue only when their chunk is the next to be written.
Result<void> MetadataLog::ship_chunks(uint64_t last_sequence) {
  for (std::vector<Pending> records; !(records = take_pending(last_sequence)).empty();) {
    Chunk chunk = chunk_of(records);
    if (!bring_home_ && !snapshotting_ && is_due(chunk)) {
      put_back(std::move(records));
      SFS_TRY(take_snapshot());  // ships them, too
      continue;
    }
    chunk.group_goes_on = bring_home_ && has_pending(last_sequence);
    const Result<void> done = write_chunk(std::move(chunk), records.back().sequence);
    if (done.ok()) continue;
    put_back(std::move(records));
    return done.error();
  }
  return {};
}

// Returns where the head is after a group of all pending records up to `last_sequence`.
uint64_t MetadataLog::end_of_group(uint64_t last_sequence) {
  uint64_t head = head_block_;
  const MutexLock lock(pending_mutex_);
  for (size_t first = 0;;) {
    const Share share = share_from(first, last_sequence);
    if (share.end == first) return head;
    const uint64_t blocks = div_round_up(share.bytes, kBlockSize);
    head = place_after(head, blocks) + blocks;
    first = share.end;
  }
}

MetadataLog::Chunk MetadataLog::chunk_of(const std::vector<Pending>& records) {
  Chunk chunk{std::vector<std::byte>(sizeof(LogChunkHeader)), {}};
  for (const Pending& record : records) {
    chunk.bytes.insert(chunk.bytes.end(), record.bytes.begin(), record.bytes.end());
    for (const DataCondition& each : record.conditions)
      chunk.conditions.push_back({record.sequence, each.block.value, each.checksum, each.length});
  }
  return chunk;
}

uint64_t MetadataLog::blocks_of(const Chunk& chunk) {
  return div_round_up(chunk.bytes.size() + chunk.conditions.size() * sizeof(LogCondition),
                      kBlockSize);
}

// Returns as many records from `first` on as a chunk holds, and none after `last_sequence`.
MetadataLog::Share MetadataLog::share_from(size_t first, uint64_t last_sequence) const {
  Share share{first, sizeof(LogChunkHeader)};
  for (; share.end < pending_.size() && pending_[share.end].sequence <= last_sequence;
       ++share.end) {
    const Pending& next = pending_[share.end];
    const uint64_t bytes =
        share.bytes + next.bytes.size() + next.conditions.size() * sizeof(LogCondition);
    if (bytes > kChunkBytesMax && share.end != first) break;
    share.bytes = bytes;
  }
  return share;
}

// Takes the first chunk's share, in order.
std::vector<MetadataLog::Pending> MetadataLog::take_pending(uint64_t last_sequence) {
  const MutexLock lock(pending_mutex_);
  const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(share_from(0, last_sequence).end);
  std::vector<Pending> records(std::move_iterator(pending_.begin()), std::move_iterator(end));
  pending_.erase(pending_.begin(), end);
  return records;
}

bool MetadataLog::has_pending(uint64_t last_sequence) {
  const MutexLock lock(pending_mutex_);
  return !pending_.empty() && pending_.front().sequence <= last_sequence;
}

void MetadataLog::put_back(std::vector<Pending> records) {
  const MutexLock lock(pending_mutex_);
  pending_.insert(pending_.begin(), std::move_iterator(records.begin()),
                  std::move_iterator(records.end()));
}

void MetadataLog::drop_pending(TxId through) {
  const MutexLock lock(pending_mutex_);
  std::erase_if(pending_, [&](const Pending& record) { return record.sequence <= through.value; });
}

// Returns where a chunk of so many blocks begins if the log ends at `head`. A chunk never crosses
// the end of the ring.
uint64_t MetadataLog::place_after(uint64_t head, uint64_t blocks) const {
  const uint64_t ring = label_.log_blocks;
  return head % ring + blocks > ring ? round_up(head, ring) : head;
}

// Returns whether the log can go on up to `end` without overwriting what is needed.
bool MetadataLog::reaches(uint64_t end) const {
  return end - needed_from_ <= label_.log_blocks;
}

bool MetadataLog::has_room(uint64_t blocks) const {
  return reaches(place_after(head_block_, blocks) + blocks);
}

// Returns whether a snapshot must be taken before this chunk.
bool MetadataLog::is_due(const Chunk& chunk) const {
  const uint64_t blocks = blocks_of(chunk);
  return head_block_ + blocks - snapshot_at_ > snapshot_due() || !has_room(blocks);
}

// Returns whether a snapshot must be taken before the log goes on up to `end`.
bool MetadataLog::is_due_before(uint64_t end) const {
  return end - snapshot_at_ > snapshot_due() || !reaches(end);
}

Result<void> MetadataLog::write_chunk(Chunk chunk, uint64_t last_sequence) {
  const ConstBytes conditions = std::as_bytes(std::span(chunk.conditions));
  const uint64_t blocks = blocks_of(chunk);
  SFS_TRY(chunk_failure_);
  if (!has_room(blocks)) return Error{ENOBUFS, "the metadata log is full"};
  chunk.bytes.insert(chunk.bytes.end(), conditions.begin(), conditions.end());
  const uint64_t payload = chunk.bytes.size() - sizeof(LogChunkHeader);
  head_block_ = place_after(head_block_, blocks);
  LogChunkHeader header{};
  header.magic = wire::kChunkMagic;
  header.number = next_chunk_;
  header.last_sequence = last_sequence;
  header.payload_bytes = static_cast<uint32_t>(payload);
  header.conditions = static_cast<uint32_t>(chunk.conditions.size());
  if (chunk.group_goes_on) header.conditions |= kGroupGoesOn;
  header.settled = durable_.load(std::memory_order_acquire);
  std::ranges::copy(geometry_.super().uuid, header.uuid);
  header.payload_checksum = crc32c(std::span(chunk.bytes).subspan(sizeof(header)));
  header.checksum = crc32c(std::as_bytes(std::span(&header, 1)));
  std::memcpy(chunk.bytes.data(), &header, sizeof(header));
  chunk.bytes.resize(blocks * kBlockSize);
  const BlockNo at{label_.log_first_block + head_block_ % label_.log_blocks};
  chunk_failure_ = device_.write(at, chunk.bytes);
  SFS_TRY(chunk_failure_);
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
  conditions_.settle(shipped.settled);
}

// Commits go on meanwhile, and pages may have their changes. The records of these commits are
// therefore durable in the log before a restore may begin with this snapshot. If commits outrun the
// log, they have to wait.
Result<void> MetadataLog::take_snapshot() {
  snapshotting_ = true;
  Result<void> done = write_snapshot_beside();
  if (!done.ok() && done.error().code == ENOBUFS) done = write_both_snapshots();
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

// Gives up the older snapshot, so that its log may be overwritten. From here on only the newest one
// is left.
Result<void> MetadataLog::give_up_older() {
  SFS_TRY(clear_snapshot(label_, snapshot_generation_ + 1, device_));
  const uint64_t ring = label_.log_blocks;
  while (needed_from_ < snapshot_at_) {
    const uint64_t some = std::min(snapshot_at_ - needed_from_, ring - needed_from_ % ring);
    device_.discard(BlockNo{label_.log_first_block + needed_from_ % ring}, some);
    needed_from_ += some;
  }
  return {};
}

Result<void> MetadataLog::write_snapshot_beside() {
  SFS_TRY(give_up_older());
  const uint64_t from = head_block_;
  // Pages are looked for after that, so they hold every record that the header promises.
  const SnapshotHeader begun = next_snapshot(journal_.quiesce());
  const std::vector<uint64_t> pages = used_pages_.look(geometry_);
  SFS_ASSIGN(const SnapshotHeader header,
             write_snapshot_pages(region_, geometry_, label_, begun, device_, pages));
  SFS_TRY(bring_data_home(false));
  SFS_TRY(ship_locked());
  return snapshot_written(header, from);
}

// Makes commits wait. Both areas then hold everything, so no restore needs a pending record.
Result<void> MetadataLog::write_both_snapshots() {
  const Journal::Stopped stopped(journal_);
  const TxId last = journal_.last();
  SFS_TRY(bring_data_home(true));
  for (int area = 0; area < 2; ++area) {
    SFS_TRY(give_up_older());
    const uint64_t from = head_block_;
    SFS_ASSIGN(const SnapshotHeader header,
               write_snapshot_pages(region_, geometry_, label_, next_snapshot(last), device_,
                                    used_pages_.look(geometry_)));
    SFS_TRY(snapshot_written(header, from));
  }
  drop_pending(last);
  shipped_ = std::max(shipped_, last.value);
  settled_ = std::max(settled_, last.value);
  made_durable({last, last});
  return {};
}

// Brings home the data of every record that the pages copied before the call may show.
Result<void> MetadataLog::bring_data_home(bool commits_stopped) {
  if (!bring_home_) return {};
  const TxId seen = commits_stopped ? journal_.last() : journal_.quiesce();
  SFS_ASSIGN(const TxId last, bring_home_(commits_stopped));
  SFS_ASSERT(last >= seen);
  data_is_home(last);
  return {};
}

Result<void> MetadataLog::snapshot_written(const SnapshotHeader& header, uint64_t from) {
  const uint64_t settled = settled_;
  SFS_TRY(finish_snapshot(header, label_, device_));
  bytes_written_.fetch_add(snapshot_bytes(header), std::memory_order_relaxed);
  snapshot_generation_ = header.generation;
  snapshot_chunk_ = header.first_chunk;
  snapshot_at_ = from;
  snapshot_blocks_ = snapshot_bytes(header) / kBlockSize;
  made_durable({TxId{header.sequence}, TxId{settled}});  // its flushes covered the data too
  return {};
}

// Returns how long the log may get after a snapshot. The device counts the log as live, and copies
// it with the data around it, so the log is kept short: twice a snapshot, so that snapshots cost
// half as much as the log.
uint64_t MetadataLog::snapshot_due() const {
  constexpr uint64_t kLeast = 128;
  const uint64_t half = label_.log_blocks / 2;
  return snapshot_blocks_ == 0 ? half : std::min(half, std::max(kLeast, 2 * snapshot_blocks_));
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

Result<void> MetadataLog::renew() {
  SFS_TRY(snapshot());
  return snapshot();
}

}  // namespace streamfs::meta
