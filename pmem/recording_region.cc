#include "pmem/recording_region.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::pmem {

RecordingRegion::RecordingRegion(uint64_t size, MetaClass meta_class)
    : current_(size / kWordSize), class_(meta_class), initial_(current_) {
  attach(reinterpret_cast<std::byte*>(current_.data()), current_.size() * kWordSize);
}

RecordingRegion::RecordingRegion(const std::vector<uint64_t>& words)
    : current_(words), class_(MetaClass::kPersistent), initial_(words) {
  attach(reinterpret_cast<std::byte*>(current_.data()), current_.size() * kWordSize);
}

void RecordingRegion::start_recording() {
  const MutexLock lock(mutex_);
  initial_ = current_;
  events_.clear();
}

void RecordingRegion::push(Event event) {
  const MutexLock lock(mutex_);
  events_.push_back(event);
}

void RecordingRegion::mark() {
  push({Event::Kind::kMark});
}
void RecordingRegion::on_store(uint64_t offset, uint64_t value) {
  push({Event::Kind::kStore, offset, value});
}
void RecordingRegion::write_back_line(uint64_t offset) {
  push({Event::Kind::kFlush, offset});
}
void RecordingRegion::drain() {
  push({Event::Kind::kFence});
}

ScratchRegion::ScratchRegion(std::span<uint64_t> words)
    : words_(words), kept_(div_round_up(words.size(), kLineWords * 64)) {
  SFS_ASSERT(words.size() % kLineWords == 0);
  attach(reinterpret_cast<std::byte*>(words.data()), words.size_bytes());
}

// Stores a line at a time.
uint64_t ScratchRegion::put(uint64_t offset, std::span<const uint64_t> words) {
  SFS_ASSERT(offset % kWordSize == 0 && offset <= size() && words.size_bytes() <= size() - offset);
  uint64_t all_changed = 0;
  for (uint64_t at = offset / kWordSize; !words.empty();) {
    const uint64_t here = std::min<uint64_t>(words.size(), kLineWords - at % kLineWords);
    uint64_t changed = 0;
    for (uint64_t i = 0; i < here; ++i) changed += words_[at + i] != words[i] ? 1 : 0;
    all_changed += changed;
    if (changed != 0) {
      keep_line(at / kLineWords);
      std::memcpy(&words_[at], words.data(), here * kWordSize);
    }
    at += here;
    words = words.subspan(here);
  }
  return all_changed;
}

void ScratchRegion::keep_line(uint64_t number) {
  uint64_t& bits = kept_[number / 64];
  const uint64_t bit = uint64_t{1} << number % 64;
  if ((bits & bit) != 0) return;
  bits |= bit;
  Line& line = before_.emplace_back();
  line.number = number;
  std::memcpy(line.words.data(), &words_[number * kLineWords], kLineSize);
}

void ScratchRegion::put_back() {
  for (const Line& line : before_) {
    std::memcpy(&words_[line.number * kLineWords], line.words.data(), kLineSize);
    kept_[line.number / 64] = 0;
  }
  before_.clear();
}

}  // namespace streamfs::pmem
