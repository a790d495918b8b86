#include "fuse-fs/meta/intent_log.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "pmem/flushed.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kLines = kBlockSize / kLineSize;
// More sequences than cut batches can have used. The log passes over them at each mount, so that
// what they left never counts.
constexpr uint64_t kSequencesLeft = uint64_t{1} << 20;
// No log comes near it. A larger sequence is damage, and none that follows it could be larger.
constexpr uint64_t kSequenceMax = uint64_t{1} << 56;

uint64_t slot_checksum(uint64_t through, uint32_t seed) {
  if (through == 0) return 0;  // as in a new log
  return crc32c(std::as_bytes(std::span(&through, 1)), seed) | uint64_t{1} << 32;
}

// Returns the bytes of an entry with its lines.
uint64_t bytes_of(const IntentEntry& entry) {
  return (1 + static_cast<uint64_t>(std::popcount(entry.lines))) * kLineSize;
}

uint32_t entry_checksum(IntentEntry entry, ConstBytes lines, uint32_t seed) {
  entry.checksum = 0;
  return crc32c(lines, crc32c(std::as_bytes(std::span(&entry, 1)), seed));
}

IntentEntry entry_at(const pmem::Region& region, uint64_t offset) {
  IntentEntry entry;
  std::memcpy(&entry, region.at(offset), sizeof(entry));
  return entry;
}

// Returns whether bytes that are no whole entry look like one after this sequence. `before` is 0 if
// no sequence is known.
bool may_have_counted(const IntentEntry& entry, uint64_t before) {
  const uint64_t most = before == 0 ? kSequenceMax : before + kSequencesLeft - 1;
  return entry.sequence > before && entry.sequence <= most &&
         entry.base_sequence < entry.sequence && entry.reserved0 == 0 && entry.reserved1 == 0;
}

// Returns the lines of `block` that differ from `base`; empty: from zeroes.
uint64_t changed_lines(ConstBytes block, ConstBytes base) {
  static constexpr std::array<std::byte, kLineSize> kZeroes{};
  uint64_t changed = 0;
  for (uint64_t line = 0; line < kLines; ++line) {
    const std::byte* const other = base.empty() ? kZeroes.data() : &base[line * kLineSize];
    if (std::memcmp(&block[line * kLineSize], other, kLineSize) != 0)
      changed |= uint64_t{1} << line;
  }
  return changed;
}

}  // namespace

IntentLog::IntentLog(pmem::Region& region, const Geometry& geometry)
    : region_(region), geometry_(geometry), seed_(geometry.super().journal_seed) {
  segments_.resize(geometry.intent_segments());
  for (size_t i = 0; i < segments_.size(); ++i) segments_[i].offset = geometry.intent_offset(i);
}

Result<std::unique_ptr<IntentLog>> IntentLog::open(pmem::Region& region, const Geometry& geometry) {
  if (geometry.intent_segments() == 0) return Error{ENODATA, "META has no intent log"};
  std::unique_ptr<IntentLog> log(new IntentLog(region, geometry));
  log->read_expired();
  if (log->damage_.expired_word) return Error{EIO, "the expired word of the intent log is damaged"};
  log->scan(false);
  if (log->damage_.baseless > 0)
    return Error{EIO, "the intent log is damaged: an entry builds on one that is not there"};
  return log;
}

Result<std::unique_ptr<IntentLog>> IntentLog::salvage(pmem::Region& region,
                                                      const Geometry& geometry) {
  if (geometry.intent_segments() == 0) return Error{ENODATA, "META has no intent log"};
  std::unique_ptr<IntentLog> log(new IntentLog(region, geometry));
  log->read_expired();
  log->scan(true);
  return log;
}

// ---- Reading

void IntentLog::read_expired() {
  const MutexLock lock(mutex_);
  bool found = false;
  for (uint64_t number = 0; number < 2; ++number) {
    for (size_t copy = 0; copy < region_.copies(); ++copy) {
      ExpiredSlot slot;
      std::memcpy(&slot, region_.copy(copy).at(segments_[0].offset + number * kLineSize),
                  sizeof(slot));
      if (slot.checksum != slot_checksum(slot.through, seed_)) continue;
      if (slot.through > kSequenceMax) continue;
      found = true;
      expired_ = std::max(expired_, slot.through);
    }
  }
  damage_.expired_word = !found;
  last_ = cut_ = seen_ = expired_;
}

void IntentLog::scan(bool salvages) {
  const MutexLock lock(mutex_);
  for (const Segment& segment : segments_) scan_segment(segment, salvages);
  std::ranges::sort(live_, {}, [](const Found& each) { return each.place.sequence; });
  std::unordered_map<uint64_t, uint64_t> offsets;  // of complete blocks, by sequence
  for (Found& each : live_) {
    seen_ = std::max(seen_, each.place.sequence);
    const IntentEntry entry = entry_at(region_, each.place.offset);
    if (each.unreadable) continue;
    if (entry.base != 0) {
      const auto base = offsets.find(entry.base_sequence);
      each.unreadable = base == offsets.end() || base->second != entry.base;
    }
    if (each.unreadable) {
      damage_.baseless += each.counts || damage_.expired_word ? 1 : 0;
    } else {
      offsets[each.place.sequence] = each.place.offset;
    }
  }
}

// Reads the entry at an offset. If META is kept twice, either copy's whole entry counts, and the
// other copy gets it.
bool IntentLog::entry_is_whole(uint64_t offset, uint64_t before, uint64_t room,
                               IntentEntry& entry) const {
  for (size_t copy = 0; copy < region_.copies(); ++copy) {
    const pmem::Region& from = region_.copy(copy);
    entry = entry_at(from, offset);
    const bool possible = entry.sequence > before && entry.sequence <= kSequenceMax;
    if (!possible || bytes_of(entry) > room) continue;
    if (entry.sequence <= expired_) return true;
    const ConstBytes lines(from.at(offset + kLineSize), bytes_of(entry) - kLineSize);
    if (entry.checksum != entry_checksum(entry, lines, seed_)) continue;
    (void)region_.equalise(copy, offset, bytes_of(entry));
    return true;
  }
  return false;
}

// Finds the counting entries of a segment; a salvage goes on behind an entry that is not whole.
void IntentLog::scan_segment(const Segment& segment, bool salvages) {
  uint64_t before = 0;
  bool counts = !damage_.expired_word;
  for (uint64_t at = kFirstEntry; at + kLineSize <= kRingSize;) {
    const uint64_t offset = segment.offset + at;
    IntentEntry entry{};
    if (!entry_is_whole(offset, before, kRingSize - at, entry)) {
      if (!salvages) return;
      if (may_have_counted(entry, std::max(before, expired_))) {
        live_.push_back({{entry.sequence, offset, 0},
                         InodeId{entry.inode},
                         BlockNo{entry.block},
                         VStreamId{entry.vstream},
                         false,
                         true});
      }
      counts = false;
      before = expired_;
      at += kLineSize;
      continue;
    }
    before = counts ? entry.sequence : expired_;
    at += bytes_of(entry);
    if (entry.sequence <= expired_) continue;
    live_.push_back({{entry.sequence, offset, 0},
                     InodeId{entry.inode},
                     BlockNo{entry.block},
                     VStreamId{entry.vstream},
                     counts,
                     false});
  }
}

bool IntentLog::allocated(uint64_t block) const {
  if (!geometry_.valid_block(block)) return false;
  const uint64_t word = region_.load(geometry_.bitmap_word(RegionKind::kBlockBitmap, block / 64));
  return (word >> block % 64 & 1) != 0;
}

std::vector<IntentLog::Found> IntentLog::found() const {
  std::unordered_map<uint64_t, size_t> newest;
  for (size_t i = 0; i < live_.size(); ++i) newest[live_[i].block.value] = i;
  std::vector<Found> found;
  for (const auto& [block, i] : newest) {
    if (allocated(block)) found.push_back(live_[i]);
  }
  std::ranges::sort(found, {}, [](const Found& each) { return each.block.value; });
  return found;
}

std::vector<IntentLog::Found> IntentLog::entries() const {
  std::vector<Found> entries;
  std::ranges::copy_if(live_, std::back_inserter(entries),
                       [&](const Found& each) { return allocated(each.block.value); });
  return entries;
}

void IntentLog::read(const Place& place, Bytes block) const {
  std::vector<uint64_t> chain{place.offset};
  for (uint64_t base = 0; (base = entry_at(region_, chain.back()).base) != 0;)
    chain.push_back(base);
  std::memset(block.data(), 0, block.size());
  for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
    uint64_t from = *at + kLineSize;
    for (uint64_t lines = entry_at(region_, *at).lines; lines != 0; lines &= lines - 1) {
      const auto line = static_cast<uint64_t>(std::countr_zero(lines));
      std::memcpy(&block[line * kLineSize], region_.at(from), kLineSize);
      from += kLineSize;
    }
  }
}

void IntentLog::start() {
  {
    const MutexLock lock(mutex_);
    last_ = seen_ + kSequencesLeft;
  }
  live_.clear();
  expire(cut());
}

// The expired word is whole again only once no entry is left that could count.
void IntentLog::reset() {
  live_.clear();
  const auto clear = [&](uint64_t offset, uint64_t length) {
    region_.store_zeroes(offset, length);
    region_.fence(region_.flush(offset, length));
  };
  const MutexLock lock(mutex_);
  for (const Segment& segment : segments_)
    clear(segment.offset + kFirstEntry, kRingSize - kFirstEntry);
  clear(segments_[0].offset, kFirstEntry);
  damage_ = {};
  last_ = cut_ = seen_ = expired_ = 0;
}

// ---- Writing

IntentLog::Batch::Batch(IntentLog& log, size_t segment) : log_(log), segment_(segment) {}

// The next batch of this segment begins where this one did, and has larger sequences than it.
IntentLog::Batch::~Batch() {
  if (!kept_ && first_ != 0) {
    (void)flushed_.leave();
    pmem::Region& region = log_.region_;
    region.store_word(first_ + offsetof(IntentEntry, sequence), 0);
    region.fence(region.flush(first_, kLineSize));
  }
  log_.end_batch(*this);
}

std::unique_ptr<IntentLog::Batch> IntentLog::begin(uint64_t blocks) {
  const uint64_t bytes = blocks * (kBlockSize + kLineSize);
  const MutexLock lock(mutex_);
  const Segment* best = nullptr;  // prefers a segment in use, which leaves others whole
  for (const Segment& segment : segments_) {
    if (segment.busy || segment.end + bytes > kRingSize) continue;
    if (best == nullptr || segment.end > best->end) best = &segment;
  }
  if (best == nullptr) return nullptr;
  const auto number = static_cast<size_t>(best - segments_.data());
  segments_[number].busy = true;
  return std::unique_ptr<Batch>(new Batch(*this, number));
}

// Gives out a sequence, and drops a base that may expire before the entry with this sequence.
uint64_t IntentLog::next_sequence(Place& base) {
  const MutexLock lock(mutex_);
  if (base.sequence <= cut_ || base.depth >= kDepthMax) base = {};
  return ++last_;
}

IntentLog::Place IntentLog::Batch::append(const Content& content) {
  pmem::Region& region = log_.region_;
  Place base = content.base;
  IntentEntry entry{};
  entry.sequence = log_.next_sequence(base);
  entry.block = content.block.value;
  entry.lines =
      changed_lines(content.bytes, base.sequence == 0 ? ConstBytes() : content.base_bytes);
  entry.base = base.offset;
  entry.base_sequence = base.sequence;
  entry.inode = content.inode.value;
  entry.vstream = content.vstream.value;
  std::array<uint64_t, (kLineSize + kBlockSize) / kWordSize> words;
  const Bytes lines = std::as_writable_bytes(std::span(words)).subspan(kLineSize);
  uint64_t bytes = 0;
  for (uint64_t left = entry.lines; left != 0; left &= left - 1) {
    const auto line = static_cast<uint64_t>(std::countr_zero(left));
    std::memcpy(&lines[bytes], &content.bytes[line * kLineSize], kLineSize);
    bytes += kLineSize;
  }
  entry.checksum = entry_checksum(entry, lines.first(bytes), log_.seed_);
  std::memcpy(words.data(), &entry, sizeof(entry));

  uint64_t offset = 0;
  {
    const MutexLock lock(log_.mutex_);
    Segment& segment = log_.segments_[segment_];
    SFS_ASSERT(segment.busy && segment.end + kLineSize + bytes <= kRingSize);
    offset = segment.offset + segment.end;
    segment.end += kLineSize + bytes;
    segment.newest = entry.sequence;
    ++log_.counts_.entries;
    log_.counts_.delta_entries += base.sequence != 0 ? 1 : 0;
    log_.counts_.lines += 1 + bytes / kLineSize;
  }
  region.store(offset, std::span(words).first((kLineSize + bytes) / kWordSize));
  flushed_ += region.flush(offset, kLineSize + bytes);
  if (first_ == 0) first_ = offset;
  return {entry.sequence, offset, base.sequence == 0 ? 0 : base.depth + 1};
}

void IntentLog::end_batch(const Batch& batch) {
  const MutexLock lock(mutex_);
  Segment& segment = segments_[batch.segment_];
  segment.busy = false;
  if (!batch.kept_ && batch.first_ != 0) {
    segment.end = batch.first_ - segment.offset;
    ++counts_.taken_back;
  }
  if (segment.newest <= expired_) segment.end = kFirstEntry;  // it expired meanwhile
}

uint64_t IntentLog::cut() {
  const MutexLock lock(mutex_);
  cut_ = last_;
  return last_;
}

void IntentLog::expire(uint64_t through) {
  const MutexLock one_at_a_time(expiring_);
  {
    const MutexLock lock(mutex_);
    if (through <= expired_) return;
  }
  store_expired(through);
  const MutexLock lock(mutex_);
  expired_ = through;
  for (Segment& segment : segments_) {
    if (!segment.busy && segment.newest <= through) segment.end = kFirstEntry;
  }
}

// Replaces the smaller slot, so that one is whole at every moment.
void IntentLog::store_expired(uint64_t through) {
  const uint64_t first = geometry_.intent_offset(0);
  ExpiredSlot slots[2];
  for (uint64_t i = 0; i < 2; ++i)
    std::memcpy(&slots[i], region_.at(first + i * kLineSize), sizeof(ExpiredSlot));
  const auto worth = [&](const ExpiredSlot& slot) {
    return slot.checksum == slot_checksum(slot.through, seed_) ? slot.through + 1 : 0;
  };
  const uint64_t at = first + (worth(slots[1]) < worth(slots[0]) ? kLineSize : 0);
  const std::array<uint64_t, 2> words{through, slot_checksum(through, seed_)};
  region_.store(at, words);
  region_.fence(region_.flush(at, sizeof(ExpiredSlot)));
}

void IntentLog::grow() {
  const MutexLock lock(mutex_);
  for (uint64_t i = segments_.size(); i < geometry_.intent_segments(); ++i) {
    Segment added;
    added.offset = geometry_.intent_offset(i);
    segments_.push_back(added);
  }
}

uint64_t IntentLog::used_bytes() const {
  const MutexLock lock(mutex_);
  uint64_t bytes = 0;
  for (const Segment& segment : segments_) bytes += segment.end - kFirstEntry;
  return bytes;
}

IntentLog::Counts IntentLog::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace streamfs::meta
