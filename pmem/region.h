// Persistent memory as bytes: stores, line flushes, fences. Everything that makes a word durable
// goes through here, so that tests can stand a recorder in its place and cut the power anywhere.
//
// Contract: a store is durable once its line was flushed after it and a fence followed the flush;
// an aligned 8-byte word is never torn; stores to one line reach the media in order; without a
// flush and a fence a store may be durable or not. Offsets and lengths are in bytes; stores are
// whole aligned words.
//
// Thread safety: stores to different words, flush and fence may run at once from any thread. Two
// threads must not store to one word at once, except through store_masked. Counters are relaxed.
// grow() runs beside all of them, one at a time.
//
// What a crash leaves: see the contract. For META classes synced and volatile a process crash
// loses no store (the pages are the kernel's), a power cut keeps what sync() covered (synced) or
// nothing (volatile).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/result.h"
#include "base/thread_counters.h"
#include "base/types.h"
#include "pmem/page_set.h"

namespace streamfs::pmem {

// What the metadata device really is: docs/DESIGN.md "META class".
enum class MetaClass : uint8_t { kPersistent = 1, kSynced = 2, kVolatile = 3 };
std::string_view to_string(MetaClass meta_class);

// Of a mirror, words and lines are those of one copy.
struct Counters {
  uint64_t words_programmed = 0;  // words whose value a store changed
  uint64_t lines_flushed = 0;
  uint64_t fences = 0;
  uint64_t syncs = 0;
  uint64_t mended = 0;  // objects that were damaged in one copy and taken from another
};

class Region {
 public:
  virtual ~Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  uint64_t size() const { return size_.load(std::memory_order_acquire); }
  const std::byte* at(uint64_t offset) const {
    if (watches_loads_) [[unlikely]]
      on_load(offset);
    return base_.load(std::memory_order_relaxed) + offset;
  }
  // The caller bounds-checks; these three assert alignment and range.
  uint64_t load(uint64_t offset) const {
    if (watches_loads_) [[unlikely]]
      on_load(offset);
    return word(offset).load(std::memory_order_acquire);
  }
  // Stores return how many words they changed; of a mirror, in the copy where it was more.
  uint64_t store(uint64_t offset, std::span<const uint64_t> words) {
    note(offset, words.size() * kWordSize);
    return programmed(put(offset, words));
  }
  uint64_t store_word(uint64_t offset, uint64_t value) { return store(offset, {&value, 1}); }
  void store_zeroes(uint64_t offset, uint64_t length);
  // Changes the bits of `mask` to those of `value`, atomically with other masked stores.
  uint64_t store_masked(uint64_t offset, uint64_t mask, uint64_t value) {
    note(offset, kWordSize);
    return programmed(put_masked(offset, mask, value));
  }
  // 4-byte store within a word whose other half another thread may be storing to.
  uint64_t store_half(uint64_t offset, uint32_t value);

  // Starts writing back every line that [offset, offset + length) touches; returns their number.
  uint64_t flush(uint64_t offset, uint64_t length);
  void fence();
  // Waits until everything fenced so far survives a power cut, if this class can: msync for
  // synced (many callers share one), nothing for the others.
  Result<void> sync();

  // What the medium has by now, in whole blocks: a file or device may have become larger since.
  virtual Result<uint64_t> medium_bytes() { return size(); }
  // False for a device, whose size is not ours to change.
  virtual bool extensible() const { return false; }
  // Makes the region this large: nothing moves, what is new holds anything. A file that is shorter
  // is extended, with its space reserved, and is as it was if that fails. What is large enough
  // already stays. Errors: ENOSPC (the device, its filesystem or the addresses beside it have no
  // room), those of the system.
  Result<void> grow(uint64_t size);

  // From now on it is known which pages of 4 KiB a store changed; a second call changes nothing. Of
  // what is new after a growth, and of a mirror that lost a copy, nobody can tell.
  void note_changes();
  // Whether a page of these may have been changed since, or where nobody can tell.
  bool may_have_changed(uint64_t offset, uint64_t length) const;

  // ---- Copies. One, but for a mirror (mirror_region.h): loads and at() are of the first, what is
  // stored goes to all.
  virtual size_t copies() const { return 1; }
  virtual Region& copy(size_t) { return *this; }
  virtual const Region& copy(size_t) const { return *this; }
  // Whether all copies hold the same here. Whoever leaves a store out because the word is right
  // already, and may meet what a cut left of an uncommitted one, asks this first.
  bool alike(uint64_t offset, uint64_t length) const;
  // Makes the others hold what copy `from` holds here, durably; false: they did. const, because to
  // every reader the region is what it was. Nobody stores here meanwhile.
  virtual bool equalise(size_t /*from*/, uint64_t /*offset*/, uint64_t /*length*/) const {
    return false;
  }
  void count_mended() const { counters_.add(kMended, 1); }
  // A copy that cannot be made durable is given up, in sync(), which returns only after `handler`
  // made it durable that the other went on alone: it stores into the region, which is the one copy
  // by then, and does not sync() it. Once a region; without a handler sync() fails. Set before
  // other threads sync.
  using CopyDropped = std::function<Result<void>(Region& left, const std::string& why)>;
  virtual void on_copy_dropped(CopyDropped) {}        // NOLINT(performance-unnecessary-value-param)
  virtual std::string dropped() const { return {}; }  // why; empty: no copy was

  // Pages of which the medium failed a load or store (bus_errors.h): they read as ones, and what is
  // stored there stays in memory. Not 0: sync() fails. Of a mirror, of the copies in use.
  virtual uint64_t lost() const { return 0; }

  virtual MetaClass meta_class() const = 0;
  // For people: what it lies on, how far a store must get there to be durable, and the instruction
  // that takes it there, if one is needed. Of a mirror, of both copies.
  virtual std::string medium() const { return "memory"; }
  // Its fence is the processor's, which completes the flushes of every region like it.
  virtual bool fences_for_all() const { return false; }
  Counters counters() const;

 protected:
  Region() = default;
  void attach(std::byte* base, uint64_t size) { base_ = base, size_ = size; }
  // As long as this one. What changed is not known any more.
  void load_from(const Region& other) {
    base_ = other.base_.load();
    changed_ = nullptr;
  }
  void note(uint64_t offset, uint64_t length) const {
    PageSet* const changed = changed_.load(std::memory_order_acquire);
    if (changed == nullptr) return;
    for (uint64_t at = offset; at < offset + length; at += PageSet::kPageBytes) changed->add(at);
    changed->add(offset + length - kWordSize);
  }
  void watch_loads() { watches_loads_ = true; }
  // Both return how many words they changed.
  virtual uint64_t put(uint64_t offset, std::span<const uint64_t> words);
  virtual uint64_t put_masked(uint64_t offset, uint64_t mask, uint64_t value);
  virtual void on_load(uint64_t) const {}                      // only if watched
  virtual Result<void> extend(uint64_t size);                  // for grow(): to more than it is
  virtual void on_store(uint64_t offset, uint64_t value) = 0;  // before the word changes
  virtual void write_back_line(uint64_t offset) = 0;
  virtual void drain() = 0;
  virtual Result<void> make_durable() = 0;

 private:
  uint64_t programmed(uint64_t words) {
    if (words != 0) counters_.add(kWords, words);
    return words;
  }
  std::atomic_ref<uint64_t> word(uint64_t offset) const {
    SFS_ASSERT(offset % kWordSize == 0 && offset + kWordSize <= size());
    return std::atomic_ref<uint64_t>(
        *reinterpret_cast<uint64_t*>(base_.load(std::memory_order_relaxed) + offset));
  }
  std::atomic<std::byte*> base_{nullptr};
  std::atomic<uint64_t> size_{0};
  bool watches_loads_ = false;
  std::unique_ptr<PageSet> noted_;
  std::atomic<PageSet*> changed_{nullptr};  // that, once it is there
  enum Counter : uint8_t { kWords, kLines, kFences, kSyncs, kMended, kCounters };
  mutable ThreadCounters<kCounters> counters_;
};

// Opens META for read and write: a devdax character device, a file on a DAX filesystem (mapped
// MAP_SYNC), or any other file. `size` > 0 creates or extends a file to that size; 0 takes what is
// there. Holds an exclusive lock while open; waits up to wait_seconds for another holder.
// Errors: ENOENT, EACCES, EBUSY (locked), EINVAL (empty, or not a file or devdax), ENOSPC.
struct OpenOptions {
  uint64_t size = 0;
  bool create = false;
  bool read_only = false;  // maps privately: stores stay in memory
  double wait_seconds = 10;
};
Result<std::unique_ptr<Region>> open_region(const std::string& path, const OpenOptions& options);

// A region in ordinary memory, zeroed: for tests and for checking an image offline.
std::unique_ptr<Region> make_memory_region(uint64_t size, MetaClass meta_class);

}  // namespace streamfs::pmem
