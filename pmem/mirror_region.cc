#include "pmem/mirror_region.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::pmem {

MirrorRegion::MirrorRegion(std::unique_ptr<Region> first, std::unique_ptr<Region> second)
    : copies_{std::move(first), std::move(second)} {
  const uint64_t size = std::min(copies_[0]->size(), copies_[1]->size());
  attach(const_cast<std::byte*>(copies_[0]->at(0)), size);
}

MetaClass MirrorRegion::meta_class() const {
  return std::max(copies_[0]->meta_class(), copies_[1]->meta_class());
}

void MirrorRegion::store(uint64_t offset, std::span<const uint64_t> words) {
  for (const auto& copy : copies_) copy->store(offset, words);
}

void MirrorRegion::store_masked(uint64_t offset, uint64_t mask, uint64_t value) {
  for (const auto& copy : copies_) copy->store_masked(offset, mask, value);
}

void MirrorRegion::write_back_line(uint64_t offset) {
  for (const auto& copy : copies_) copy->flush(offset, kLineSize);
}

void MirrorRegion::drain() {
  copies_[0]->fence();
  if (!copies_[0]->fences_for_all() || !copies_[1]->fences_for_all()) copies_[1]->fence();
}

// Both are tried: the one that still can, keeps what it has.
Result<void> MirrorRegion::make_durable() {
  const Result<void> first = copies_[0]->sync();
  const Result<void> second = copies_[1]->sync();
  return first.ok() ? second : first;
}

bool MirrorRegion::equalise(size_t from, uint64_t offset, uint64_t length) const {
  const Region& right = *copies_.at(from);
  Region& wrong = *copies_.at(1 - from);
  const uint64_t begin = round_down(offset, kWordSize);
  const uint64_t end = round_up(offset + length, kWordSize);
  bool differed = false;
  for (uint64_t at = begin; at < end; at += kWordSize) {
    const uint64_t value = right.load(at);
    differed = differed || wrong.load(at) != value;
    wrong.store_word(at, value);
  }
  if (!differed) return false;
  wrong.flush(begin, end - begin);
  wrong.fence();
  return true;
}

Result<uint64_t> MirrorRegion::medium_bytes() {
  SFS_ASSIGN(const uint64_t first, copies_[0]->medium_bytes());
  SFS_ASSIGN(const uint64_t second, copies_[1]->medium_bytes());
  return std::min(first, second);
}

bool MirrorRegion::extensible() const {
  return copies_[0]->extensible() && copies_[1]->extensible();
}

// One that has grown alone is longer than its filesystem, which does no harm.
Result<void> MirrorRegion::extend(uint64_t size) {
  SFS_TRY(copies_[0]->grow(size));
  return copies_[1]->grow(size);
}

Counters MirrorRegion::counters() const {
  Counters counters = Region::counters();
  counters.words_programmed = copies_[0]->counters().words_programmed;
  return counters;
}

}  // namespace streamfs::pmem
