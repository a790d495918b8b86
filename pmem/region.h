// Persistent memory as bytes: stores, line flushes, fences. Every store to META goes through this
// interface, so that tests can put a recorder in its place and cut the power anywhere.
//
// Contract: a store is durable once its line was flushed after it and a fence followed the flush.
// Without them a store may be durable or not. An aligned 8-byte word is never torn. Stores to one
// line reach the media in order. Offsets and lengths are in bytes; stores are whole aligned words,
// except store_half().
//
// Thread safety: stores to different words, flush and fence may run at once from any thread. Two
// threads must not store to one word at once, except through store_masked() and store_half().
// Counters are relaxed. grow() may run beside all of these, but one call at a time.
//
// After a crash: see the contract. For META classes synced and volatile a process crash loses no
// store, because the kernel owns the pages. A power cut keeps what sync() covered (synced) or
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
#include "pmem/flushed.h"
#include "pmem/page_set.h"

namespace streamfs::pmem {

// Durability of the metadata device: docs/design/metadata.md, "META classes".
enum class MetaClass : uint8_t { kPersistent = 1, kSynced = 2, kVolatile = 3 };
std::string_view to_string(MetaClass meta_class);

// A mirror counts a line that it flushes in both copies once. For a store it counts the words of
// the copy in which more words changed.
struct Counters {
  uint64_t words_programmed = 0;  // words whose value a store changed
  uint64_t lines_flushed = 0;
  uint64_t fences = 0;
  uint64_t syncs = 0;
  uint64_t mended = 0;  // objects damaged in one copy and restored from the other
};

class Region {
 public:
  virtual ~Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  uint64_t size() const { return size_.load(std::memory_order_acquire); }
  // Requires: `offset` lies in the region; at() does not check it.
  const std::byte* at(uint64_t offset) const {
    if (watches_loads_) [[unlikely]]
      on_load(offset);
    return base_.load(std::memory_order_relaxed) + offset;
  }
  // Loads and stores assert alignment and range.
  uint64_t load(uint64_t offset) const {
    if (watches_loads_) [[unlikely]]
      on_load(offset);
    return word(offset).load(std::memory_order_acquire);
  }
  // Stores return the number of words they changed; a mirror returns the larger of its copies'.
  uint64_t store(uint64_t offset, std::span<const uint64_t> words) {
    note(offset, words.size() * kWordSize);
    return programmed(put(offset, words));
  }
  uint64_t store_word(uint64_t offset, uint64_t value) { return store(offset, {&value, 1}); }
  void store_zeroes(uint64_t offset, uint64_t length);
  // Sets the bits of `mask` to those of `value`, atomically with other masked stores.
  uint64_t store_masked(uint64_t offset, uint64_t mask, uint64_t value) {
    note(offset, kWordSize);
    return programmed(put_masked(offset, mask, value));
  }
  // Stores 4 bytes of a word; another thread may store the other half at the same time.
  uint64_t store_half(uint64_t offset, uint32_t value);

  // Starts the write-back of every line that [offset, offset + length) touches.
  Flushed flush(uint64_t offset, uint64_t length);
  // Makes every line durable that this thread has flushed, also lines that `flushed` does not
  // count. `flushed` is consumed.
  void fence(Flushed flushed = {});
  // Returns once everything fenced so far is as durable as the META class allows. The class synced
  // calls msync, which concurrent callers share; the other classes wait for nothing. Errors: those
  // of msync, for good after the first; EIO if the medium lost pages (lost()).
  Result<void> sync();

  // Returns the current size of the medium in bytes, whole blocks: a file or device may have grown
  // since it was opened.
  virtual Result<uint64_t> medium_bytes() { return size(); }
  // False for a device: only a file can be extended.
  virtual bool extensible() const { return false; }
  // Grows the region to `size` bytes; does nothing if it is that large. No pointer moves; the
  // content of the new part is undefined. Extends a shorter file and reserves its space; if that
  // fails, the file keeps its old length. Errors: ENOSPC (no room on the device, in its filesystem
  // or in the reserved addresses), those of the system.
  Result<void> grow(uint64_t size);

  // Starts to record which pages of 4 KiB are stored to. A second call does nothing. Pages added by
  // grow() are not recorded, and a mirror that lost a copy stops recording.
  void note_changes();
  // False only if recording shows that no page of the range was stored to.
  bool may_have_changed(uint64_t offset, uint64_t length) const;

  // ---- Copies: one, or two in a mirror (mirror_region.h). Loads and at() use the first copy in
  // use, stores go to all.
  virtual size_t copies() const { return 1; }
  virtual Region& copy(size_t) { return *this; }
  virtual const Region& copy(size_t) const { return *this; }
  // Returns whether all copies hold the same words here. A caller that skips a store because the
  // word already has the value must check this first: after a cut, an uncommitted store may have
  // reached one copy only.
  bool alike(uint64_t offset, uint64_t length) const;
  // Copies these words from copy `from` to the other copy, flushes and fences them. Returns false
  // if they were equal or only one copy is in use. const, because readers see the same words
  // before and after. Requires: no concurrent store to these words.
  virtual bool equalise(size_t /*from*/, uint64_t /*offset*/, uint64_t /*length*/) const {
    return false;
  }
  void count_mended() const { counters_.add(kMended, 1); }
  // Sets the handler for a copy that cannot be made durable. sync() drops such a copy and returns
  // only after `handler`, which records durably that the other copy is alone. The handler stores
  // into the remaining copy and must not sync() the region. It is called at most once. Without a
  // handler sync() fails. Requires: no other thread syncs yet.
  using CopyDropped = std::function<Result<void>(Region& left, const std::string& why)>;
  virtual void on_copy_dropped(CopyDropped) {}        // NOLINT(performance-unnecessary-value-param)
  virtual std::string dropped() const { return {}; }  // the reason; empty: no copy was dropped

  // Pages for which the medium failed a load or store (bus_errors.h): they read as ones, and later
  // stores to them stay in memory. Unless it is 0, sync() fails; a mirror's sync() drops the copy.
  // A mirror returns the sum of the copies in use.
  virtual uint64_t lost() const { return 0; }

  virtual MetaClass meta_class() const = 0;
  // Describes the medium for people: its kind, the persistence domain and the write-back
  // instruction, if one is needed. A mirror describes both copies.
  virtual std::string medium() const { return "memory"; }
  // Returns whether fence() is the processor's instruction. It then also completes this thread's
  // flushes of every other region for which this is true.
  virtual bool fences_for_all() const { return false; }
  Counters counters() const;

 protected:
  Region() = default;
  void attach(std::byte* base, uint64_t size) { base_ = base, size_ = size; }
  // Turns loads to `other` and stops recording changes. Requires: `other` is at least as long.
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
  // Both return the number of words they changed.
  virtual uint64_t put(uint64_t offset, std::span<const uint64_t> words);
  virtual uint64_t put_masked(uint64_t offset, uint64_t mask, uint64_t value);
  virtual void on_load(uint64_t) const {}                      // only if watched
  virtual Result<void> extend(uint64_t size);                  // for grow(); size > size()
  virtual void on_store(uint64_t offset, uint64_t value) = 0;  // before the word changes
  virtual void write_back_line(uint64_t offset) = 0;           // flush(), for each line
  virtual void drain() = 0;                                    // fence()
  virtual Result<void> make_durable() = 0;                     // sync()

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
  std::atomic<PageSet*> changed_{nullptr};  // noted_ while changes are recorded
  enum Counter : uint8_t { kWords, kLines, kFences, kSyncs, kMended, kCounters };
  mutable ThreadCounters<kCounters> counters_;
};

// Opens META: a devdax character device, a file on a DAX filesystem (mapped MAP_SYNC), or any other
// file. Extends a file that is shorter than `size`. Unless read_only, holds an exclusive lock while
// open and waits up to wait_seconds for another holder. If opening fails, a file that it created is
// removed and one that was empty is empty again.
// Errors: ENOENT, EACCES, EBUSY (locked), EINVAL (smaller than 4 KiB, or not a file or devdax),
// ENOSPC, ENOMEM.
struct OpenOptions {
  uint64_t size = 0;  // bytes; 0: as long as it is
  bool create = false;
  bool read_only = false;  // a private mapping or copy: stores stay in memory
  double wait_seconds = 10;
  // The caller knows that this memory keeps what was fenced although its class says otherwise, as
  // memory with a battery does: the class is then kPersistent. Errors: EINVAL, it is a file on a
  // disk, whose pages the kernel writes back in any order.
  bool declared_persistent = false;
};
Result<std::unique_ptr<Region>> open_region(const std::string& path, const OpenOptions& options);

// Makes a zeroed region in ordinary memory, for tests and for checking an image offline.
std::unique_ptr<Region> make_memory_region(uint64_t size, MetaClass meta_class);

}  // namespace streamfs::pmem
