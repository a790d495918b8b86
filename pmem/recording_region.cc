#include "pmem/recording_region.h"

#include <cstddef>
#include <cstdint>
#include <vector>

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

ScratchRegion::ScratchRegion(std::vector<uint64_t>& words) : words_(words) {
  attach(reinterpret_cast<std::byte*>(words.data()), words.size() * kWordSize);
}

ScratchRegion::~ScratchRegion() {
  for (auto old = undo_.rbegin(); old != undo_.rend(); ++old) words_[old->index] = old->value;
}

void ScratchRegion::on_store(uint64_t offset, uint64_t) {
  undo_.push_back({offset / kWordSize, words_[offset / kWordSize]});
}

}  // namespace streamfs::pmem
