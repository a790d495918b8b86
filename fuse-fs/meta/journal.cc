#include "fuse-fs/meta/journal.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/thread_number.h"
#include "base/types.h"
#include "fuse-fs/meta/record.h"
#include "fuse-fs/meta/young_bodies.h"
#include "pmem/flushed.h"
#include "pmem/region.h"

namespace streamfs::meta {

namespace {

constexpr auto kCheckpointEvery = std::chrono::milliseconds(100);
constexpr size_t kMaxProofs = 255;

void seal(std::vector<uint64_t>& record, TxId sequence, uint32_t body_crc, RecordHeader header,
          uint32_t seed) {
  header.sequence_words = sequence.value | static_cast<uint64_t>(record.size()) << 48U;
  header.body_checksum = body_crc;
  header.checksum = 0;
  std::memcpy(record.data(), &header, sizeof(header));
  header.checksum = record_checksum(record, seed);
  std::memcpy(record.data(), &header, sizeof(header));
}

}  // namespace

// A ring. Positions grow for ever; a record never crosses the ring's end.
struct alignas(kLineSize) Journal::Ring {
  explicit Ring(uint64_t base_offset) : base(base_offset) {}

  // Returns where a record of `words` may go, if it fits without touching an unfinished one.
  std::optional<uint64_t> room_for(uint64_t words) SFS_REQUIRES(mutex) {
    const uint64_t bytes = round_up(words * kWordSize, kLineSize);
    uint64_t at = head;
    if (at % kRingSize + bytes > kRingSize) at = round_up(at, kRingSize);
    const uint64_t tail = unfinished.empty() ? at : unfinished.front().position;
    if (at + bytes - tail > kRingSize) return std::nullopt;
    return at;
  }
  uint64_t offset_of(uint64_t position) const { return base + position % kRingSize; }

  struct Entry {
    uint64_t sequence, position, words;
  };
  const uint64_t base;
  Mutex mutex;  // after the checkpoint mutex; before the shards of young bodies and the sink
  uint64_t head SFS_GUARDED_BY(mutex) = 0;
  std::deque<Entry> unfinished SFS_GUARDED_BY(mutex);  // above the watermark, by sequence
};

Journal::Journal(pmem::Region& region, const Geometry& geometry)
    : region_(region), geometry_(geometry), young_(std::make_unique<YoungBodies>()) {
  for (uint32_t i = 0; i < geometry.super().ring_count; ++i) {
    rings_.push_back(std::make_unique<Ring>(geometry.ring_offset(i)));
  }
  watermark_ = region.load(kWatermarkOffset);
  next_sequence_ = watermark_ + 1;
}

Journal::~Journal() {
  stop_checkpointer();
}

Journal::Ring& Journal::my_ring() {
  return *rings_[thread_number() % rings_.size()];
}

Result<TxId> Journal::commit(Transaction& tx) {
  if (!tx.fits()) return Error{E2BIG, "a transaction larger than a journal record"};
  Ring& ring = my_ring();
  TxId committed;
  bool crowded = false;
  while (!commit_in(ring, tx, committed, crowded)) checkpoint();
  if (crowded) checkpoint_unless_busy();
  return committed;
}

// Returns false if the ring is full or there are too many proofs. A checkpoint ends both.
bool Journal::commit_in(Ring& ring, Transaction& tx, TxId& committed, bool& crowded) {
  const MutexLock lock(ring.mutex);
  const std::vector<uint64_t> proofs = find_proofs(tx);
  if (proofs.size() > kMaxProofs) return false;
  std::vector<uint64_t> record = tx.encode(proofs);
  const auto at = ring.room_for(record.size());
  if (!at) return false;
  committed = TxId{next_sequence_.fetch_add(1, std::memory_order_acq_rel)};
  uint32_t body_crc = 0;
  for (const auto& body : tx.bodies_) {
    body_crc = crc32c({region_.at(body.offset), body.words * kWordSize}, body_crc);
  }
  seal(record, committed, body_crc, tx.header(proofs.size()), geometry_.super().journal_seed);
  ring.unfinished.push_back({committed.value, *at, record.size()});
  ring.head = *at + round_up(record.size() * kWordSize, kLineSize);
  record.resize(round_up(record.size(), kLineSize / kWordSize));
  crowded = ring.head - ring.unfinished.front().position > kRingSize / 2;
  publish(ring, record, *at, tx);
  return true;
}

// Record and bodies become durable under one fence; only then do the home words change.
void Journal::publish(Ring& ring, std::span<const uint64_t> record, uint64_t at, Transaction& tx) {
  const auto view = RecordView::parse(record);
  SFS_ASSERT(view && view->in_bounds(geometry_));
  pmem::Flushed flushed;
  for (const auto& body : tx.bodies_) {
    flushed += region_.flush(body.offset, body.words * kWordSize);
    young_->add(body.offset, body.words * kWordSize, view->sequence());
  }
  const uint64_t offset = ring.offset_of(at);
  region_.store(offset, record);
  flushed += region_.flush(offset, view->words().size() * kWordSize);
  const uint64_t lines = flushed.lines();
  flushed += std::move(tx.flushed_);
  region_.fence(std::move(flushed));
  tell_sink(view->sequence(), view->words(), tx);
  view->apply(region_, geometry_);
  counters_.add(kCommits, 1);
  counters_.add(kCommitFences, 1);
  counters_.add(kCommitLines, lines);
}

void Journal::tell_sink(TxId tx, std::span<const uint64_t> record, const Transaction& transaction) {
  if (!sink_) return;
  std::vector<ConstBytes> bodies;
  for (const auto& body : transaction.bodies_) {
    bodies.emplace_back(region_.at(body.offset), body.words * kWordSize);
  }
  sink_(tx, std::as_bytes(record), bodies, transaction.conditions_);
}

// The transaction's objects are locked, so none of their bodies can become younger meanwhile.
std::vector<uint64_t> Journal::find_proofs(const Transaction& tx) const {
  std::vector<uint64_t> proofs;
  const auto add = [&](uint64_t line) {
    if (const auto young = young_->find(line)) proofs.push_back(young->value);
  };
  for (const auto& patch : tx.patches_) {
    for (uint64_t line = 0; line < kCellSize / kLineSize; ++line) {
      if ((patch.mask >> (line * 8) & 0xffU) != 0) add(patch.cell * kCellSize + line * kLineSize);
    }
  }
  for (const auto& mask : tx.masks_) add(round_down(mask.offset, kLineSize));
  std::ranges::sort(proofs);
  const auto repeated = std::ranges::unique(proofs);
  proofs.erase(repeated.begin(), repeated.end());
  return proofs;
}

TxId Journal::quiesce() {
  // A sequence is given out and stored home under one hold of a ring's mutex. Once each ring's
  // mutex was free, all sequences given out before are therefore stored home.
  const uint64_t last_given = next_sequence_.load(std::memory_order_acquire) - 1;
  for (const auto& ring : rings_) {
    const MutexLock lock(ring->mutex);
  }
  return TxId{last_given};
}

// Locks in the order of the rings. No other thread holds more than one of them.
Journal::Stopped::Stopped(Journal& journal) SFS_NO_TSA : journal_(journal) {
  for (const auto& ring : journal_.rings_) ring->mutex.lock();
}

Journal::Stopped::~Stopped() SFS_NO_TSA {
  for (const auto& ring : journal_.rings_) ring->mutex.unlock();
}

std::vector<Journal::Place> Journal::unfinished_up_to(uint64_t sequence) {
  std::vector<Place> places;
  for (const auto& ring : rings_) {
    const MutexLock lock(ring->mutex);
    for (const auto& entry : ring->unfinished) {
      if (entry.sequence > sequence) break;
      places.push_back({entry.sequence, ring->offset_of(entry.position), entry.words});
    }
  }
  return places;
}

void Journal::checkpoint() {
  const MutexLock lock(checkpoint_mutex_);
  checkpoint_locked();
}

// At half a ring, one thread checkpoints while the others go on in the other halves of their rings.
// If all went on to the end, they would get there together and wait for each other every time.
void Journal::checkpoint_unless_busy() {
  if (!checkpoint_mutex_.try_lock()) return;
  checkpoint_locked();
  checkpoint_mutex_.unlock();
}

void Journal::checkpoint_locked() {
  const uint64_t target = quiesce().value;
  if (target == watermark_.load(std::memory_order_relaxed)) return;
  std::vector<uint64_t> lines;
  for (const Place& place : unfinished_up_to(target))
    counters_.add(kBlockWords, add_home_lines(place, lines));
  make_home_durable(std::move(lines));
  store_watermark(target);
  for (const auto& ring : rings_) {
    const MutexLock ring_lock(ring->mutex);
    while (!ring->unfinished.empty() && ring->unfinished.front().sequence <= target) {
      ring->unfinished.pop_front();
    }
  }
  young_->forget_up_to(TxId{target});
  counters_.add(kCheckpoints, 1);
}

uint64_t Journal::add_home_lines(const Place& place, std::vector<uint64_t>& lines) const {
  std::vector<uint64_t> record(place.words);
  std::memcpy(record.data(), region_.at(place.offset), place.words * kWordSize);
  const auto view = RecordView::parse(record);
  SFS_ASSERT(view && view->sequence().value == place.sequence);
  HomeBlocks blocks;
  const size_t first = lines.size();
  view->home_lines(geometry_, lines);
  for (size_t i = first; i < lines.size(); ++i) blocks.add(lines[i], kLineSize);
  view->add_bodies(blocks);
  return blocks.take_words();
}

void Journal::make_home_durable(std::vector<uint64_t> lines) {
  std::ranges::sort(lines);
  const auto repeated = std::ranges::unique(lines);
  lines.erase(repeated.begin(), repeated.end());
  HomeBlocks blocks;
  pmem::Flushed flushed;
  for (const uint64_t line : lines) {
    flushed += region_.flush(line, kLineSize);
    blocks.add(line, kLineSize);
  }
  region_.fence(std::move(flushed));
  counters_.add(kCheckpointBlockWords, blocks.take_words());
}

void Journal::store_watermark(uint64_t sequence) {
  region_.store_word(kWatermarkOffset, sequence);
  region_.fence(region_.flush(kWatermarkOffset, kWordSize));
  watermark_.store(sequence, std::memory_order_release);
}

void Journal::start_checkpointer() {
  checkpointer_ = std::thread([this] { checkpointer_loop(); });
}

void Journal::stop_checkpointer() {
  {
    const MutexLock lock(timer_mutex_);
    stopping_ = true;
  }
  timer_.notify_all();
  if (checkpointer_.joinable()) checkpointer_.join();
}

void Journal::checkpointer_loop() {
  for (;;) {
    {
      const MutexLock lock(timer_mutex_);
      if (!stopping_) timer_.wait_for(timer_mutex_, kCheckpointEvery);
      if (stopping_) return;
    }
    checkpoint();
  }
}

JournalStats Journal::stats() {
  const MutexLock lock(checkpoint_mutex_);  // a checkpoint ends records, and counts their blocks
  uint64_t block_words = counters_.sum(kBlockWords);
  std::vector<uint64_t> lines;
  for (const Place& place : unfinished_up_to(quiesce().value))
    block_words += add_home_lines(place, lines);
  return {counters_.sum(kCommits),
          counters_.sum(kCommitFences),
          counters_.sum(kCommitLines),
          counters_.sum(kCheckpoints),
          block_words,
          counters_.sum(kCheckpointBlockWords)};
}

}  // namespace streamfs::meta
