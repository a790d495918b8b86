#include "pmem/region.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "pmem/flushed.h"
#include "pmem/page_set.h"

namespace streamfs::pmem {

std::string_view to_string(MetaClass meta_class) {
  switch (meta_class) {
    case MetaClass::kPersistent:
      return "persistent";
    case MetaClass::kSynced:
      return "synced";
    case MetaClass::kVolatile:
      return "volatile";
  }
  return "unknown";
}

uint64_t Region::put(uint64_t offset, std::span<const uint64_t> words) {
  uint64_t changed = 0;
  for (const uint64_t value : words) {
    auto home = word(offset);
    if (home.load(std::memory_order_relaxed) != value) {
      on_store(offset, value);
      home.store(value, std::memory_order_release);
      ++changed;
    }
    offset += kWordSize;
  }
  return changed;
}

void Region::store_zeroes(uint64_t offset, uint64_t length) {
  static constexpr std::array<uint64_t, 512> kZeroes{};
  const uint64_t end = offset + length;
  while (offset < end) {
    const uint64_t here = std::min<uint64_t>(end - offset, sizeof kZeroes);
    store(offset, std::span(kZeroes).first(here / kWordSize));
    offset += here;
  }
}

uint64_t Region::put_masked(uint64_t offset, uint64_t mask, uint64_t value) {
  auto home = word(offset);
  uint64_t old = home.load(std::memory_order_relaxed);
  uint64_t next = (old & ~mask) | (value & mask);
  if (next == old) return 0;
  on_store(offset, next);
  while (!home.compare_exchange_weak(old, next, std::memory_order_acq_rel)) {
    next = (old & ~mask) | (value & mask);
  }
  return 1;
}

uint64_t Region::store_half(uint64_t offset, uint32_t value) {
  SFS_ASSERT(offset % 4 == 0);
  const uint64_t shift = offset % kWordSize * 8;  // little-endian halves
  return store_masked(offset / kWordSize * kWordSize, uint64_t{0xffffffff} << shift,
                      uint64_t{value} << shift);
}

Flushed Region::flush(uint64_t offset, uint64_t length) {
  if (length == 0) return {};
  SFS_ASSERT(offset + length <= size());
  const uint64_t first = round_down(offset, kLineSize);
  const uint64_t end = round_up(offset + length, kLineSize);
  for (uint64_t line = first; line < end; line += kLineSize) write_back_line(line);
  const uint64_t lines = (end - first) / kLineSize;
  counters_.add(kLines, lines);
  return Flushed(lines);
}

void Region::fence(Flushed flushed) {
  flushed.take();
  drain();
  counters_.add(kFences, 1);
}

Result<void> Region::sync() {
  counters_.add(kSyncs, 1);
  return make_durable();
}

Result<void> Region::grow(uint64_t size) {
  if (size <= this->size()) return {};
  SFS_TRY(extend(size));
  size_.store(size, std::memory_order_release);
  return {};
}

Result<void> Region::extend(uint64_t size) {
  return Error{ENOSPC, "META has " + std::to_string(this->size()) + " bytes and cannot become " +
                           std::to_string(size)};
}

void Region::note_changes() {
  if (noted_ != nullptr) return;
  noted_ = std::make_unique<PageSet>(size());
  changed_.store(noted_.get(), std::memory_order_release);
}

bool Region::may_have_changed(uint64_t offset, uint64_t length) const {
  const PageSet* const changed = changed_.load(std::memory_order_acquire);
  return changed == nullptr || changed->may_have(offset, length);
}

bool Region::alike(uint64_t offset, uint64_t length) const {
  const uint64_t end = round_up(offset + length, kWordSize);
  for (size_t i = 1; i < copies(); ++i) {
    const Region& other = copy(i);
    for (uint64_t at = round_down(offset, kWordSize); at < end; at += kWordSize) {
      if (other.load(at) != load(at)) return false;
    }
  }
  return true;
}

Counters Region::counters() const {
  return {counters_.sum(kWords), counters_.sum(kLines), counters_.sum(kFences),
          counters_.sum(kSyncs), counters_.sum(kMended)};
}

}  // namespace streamfs::pmem
