#include "pmem/mirror_region.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/mutex.h"
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

std::string MirrorRegion::medium() const {
  return copies_[0]->medium() + " and " + copies_[1]->medium();
}

Region* MirrorRegion::readable() const {
  if (Region* const alone = left()) return alone;
  const bool lost[] = {copies_[0]->lost() > 0, copies_[1]->lost() > 0};
  if (lost[0] == lost[1]) [[likely]]
    return nullptr;
  Region* const whole = copies_[lost[0] ? 1 : 0].get();
  const_cast<MirrorRegion*>(this)->load_from(*whole);  // readers see the same words as before
  return whole;
}

Region& MirrorRegion::copy_or_left(size_t index) const {
  Region* const alone = readable();
  return alone != nullptr ? *alone : *copies_.at(index);
}

template <typename Do>
void MirrorRegion::each(Do&& apply) const {
  if (Region* const alone = left()) return apply(*alone);
  for (const auto& copy : copies_) apply(*copy);
}

uint64_t MirrorRegion::put(uint64_t offset, std::span<const uint64_t> words) {
  uint64_t changed = 0;
  each([&](Region& copy) { changed = std::max(changed, copy.store(offset, words)); });
  return changed;
}

uint64_t MirrorRegion::put_masked(uint64_t offset, uint64_t mask, uint64_t value) {
  uint64_t changed = 0;
  each([&](Region& copy) { changed = std::max(changed, copy.store_masked(offset, mask, value)); });
  return changed;
}

void MirrorRegion::write_back_line(uint64_t offset) {
  each([&](Region& copy) { copy.flush(offset, kLineSize).leave(); });
}

void MirrorRegion::drain() {
  if (Region* const alone = left()) return alone->fence();
  copies_[0]->fence();
  if (!copies_[0]->fences_for_all() || !copies_[1]->fences_for_all()) copies_[1]->fence();
}

void MirrorRegion::on_copy_dropped(CopyDropped handler) {
  const MutexLock lock(mutex_);
  handler_ = std::move(handler);
}

std::string MirrorRegion::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

uint64_t MirrorRegion::lost() const {
  uint64_t pages = 0;
  each([&](const Region& copy) { pages += copy.lost(); });
  return pages;
}

Result<void> MirrorRegion::settled() const {
  const MutexLock lock(mutex_);
  return settled_;
}

// Syncs both copies, even if the first one fails, so that the other is durable.
Result<void> MirrorRegion::make_durable() {
  if (Region* const alone = left()) {
    SFS_TRY(settled());
    return alone->sync();
  }
  const Result<void> first = copies_[0]->sync();
  const Result<void> second = copies_[1]->sync();
  if (first.ok() && second.ok()) return {};
  if (!first.ok() && !second.ok()) return first;
  return first.ok() ? drop(1, second.error()) : drop(0, first.error());
}

// Drops a copy. Threads that come while the handler runs wait for its result. If two threads have
// seen different copies fail, no copy is left.
Result<void> MirrorRegion::drop(size_t failed, const Error& why) {
  const MutexLock lock(mutex_);
  Region& other = *copies_.at(1 - failed);
  if (Region* const alone = left()) return alone == &other ? settled_ : Result<void>(why);
  load_from(other);
  dropped_ = why.message();
  left_.store(&other, std::memory_order_release);
  settled_ = handler_ ? handler_(other, dropped_)
                      : Error{why.code, "one copy of META failed: " + dropped_};
  return settled_;
}

bool MirrorRegion::equalise(size_t from, uint64_t offset, uint64_t length) const {
  if (readable() != nullptr) return false;
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
  note(begin, end - begin);
  wrong.fence(wrong.flush(begin, end - begin));
  return true;
}

Result<uint64_t> MirrorRegion::medium_bytes() {
  if (Region* const alone = left()) return alone->medium_bytes();
  SFS_ASSIGN(const uint64_t first, copies_[0]->medium_bytes());
  SFS_ASSIGN(const uint64_t second, copies_[1]->medium_bytes());
  return std::min(first, second);
}

bool MirrorRegion::extensible() const {
  bool all = true;
  each([&](const Region& copy) { all = all && copy.extensible(); });
  return all;
}

// If only the first copy grows, it is longer than its filesystem, which does no harm.
Result<void> MirrorRegion::extend(uint64_t size) {
  if (Region* const alone = left()) return alone->grow(size);
  SFS_TRY(copies_[0]->grow(size));
  return copies_[1]->grow(size);
}

}  // namespace streamfs::pmem
