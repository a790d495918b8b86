// Keeps the vStreams in use: number, name, source, the vStream that each is shown as, and the
// pStream that K-means gives it.
//
// For a name or a context, a number is used again only once its vStream was displaced and none of
// its pages lives. A program that chooses a number itself gets it at once (by_number()). Each use
// has a generation; a mount starts generations at a pseudo-random value. Contexts are a cache of
// kContextsMax, at most kContextsOfOwnerMax for each owner. A new context displaces one of the same
// owner's (context_cache.h). If none can be displaced, its files get the program's vStream or the
// default one.
//
// Thread safety: any thread may call any method. The methods of the write path use plain atomics;
// all others take the table's mutex (a leaf).
// After a crash: the next mount has the vStreams that save_changed() stored, with the same numbers
// and names.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/placement/context.h"
#include "fuse-fs/placement/context_cache.h"
#include "fuse-fs/placement/lifetime.h"
#include "fuse-fs/placement/placement.h"

namespace streamfs::placement {

class VStreamTable {
 public:
  // The lowest number for names and contexts: programs that choose numbers choose small ones.
  static constexpr uint16_t kFirstNamed = 0x4000;
  // Contexts have numbers below this, so that they never use up the numbers for names.
  static constexpr uint16_t kContextsEnd = 0xc000;
  static constexpr size_t kContextsMax = 4096;
  static constexpr size_t kContextsOfOwnerMax = 1024;

  struct Entry {
    Source source = Source::kDefault;
    std::string name;
    Context context;
    uint32_t owner = 0;   // of a context
    bool earned = false;  // of a context: it is shown as itself
    std::optional<uint32_t> slot;
    SavedVStream saved;  // as last stored
  };

  // Numbers given by this mount start at `first_generation`. Requires: `lifetimes` outlives the
  // table.
  VStreamTable(Store& store, LifetimeTable& lifetimes, uint16_t pstream_count,
               uint8_t first_generation);

  // The next three return the known vStream or add one; `clock` is the device's. If a stronger
  // source names a vStream that is known as a context, the vStream leaves the cache of contexts.
  //
  // Errors: ENOSPC if all numbers for names are in use; EINVAL for a name that is empty, longer
  // than kNameMax or holds a NUL.
  Result<VStreamId> by_name(std::string_view name, Source source, uint64_t clock);
  VStreamId by_number(uint16_t number, uint64_t clock);
  // Never fails: returns the program's vStream or the default one if there is no room.
  VStreamId by_context(const Context& context, uint32_t uid, uint64_t clock);
  std::optional<Entry> find(VStreamId vstream) const;
  std::map<VStreamId, Entry> entries() const;
  // Returns the vStreams that are shown as themselves, without the default one.
  std::vector<VStreamId> used() const;
  // Returns the measurements, summed by the vStream they are shown as. A vStream without any is
  // absent.
  std::unordered_map<uint16_t, LifetimeTable::Seen> seen() const;
  LifetimeTable::Seen seen(VStreamId shown) const;

  // Gives a vStream to each context that has earned one.
  void split_contexts(uint64_t clock);

  // Returns `stored`, or the default vStream if that number's generation is not `generation`.
  VStreamId current(VStreamId stored, uint8_t generation) const {
    return generation_of(stored) == generation ? stored : kDefaultVStream;
  }
  uint8_t generation_of(VStreamId v) const {
    return hot_[v.value].generation.load(std::memory_order_relaxed);
  }
  VStreamId shown(VStreamId v) const {
    return VStreamId{hot_[v.value].shown.load(std::memory_order_relaxed)};
  }
  // Returns the vStream that `shown` was split from; `shown` itself if it was not split.
  VStreamId parent(VStreamId shown) const {
    return VStreamId{hot_[shown.value].parent.load(std::memory_order_relaxed)};
  }
  PStreamId pstream(VStreamId shown) const {
    return PStreamId{hot_[shown.value].pstream.load(std::memory_order_relaxed)};
  }
  uint64_t born_clock(VStreamId v) const {
    return hot_[v.value].born.load(std::memory_order_relaxed);
  }
  // Sets the clock of the birth. A model that has learned up to an earlier clock does not know the
  // vStream.
  void set_born_clock(VStreamId v, uint64_t clock) {
    hot_[v.value].born.store(clock, std::memory_order_relaxed);
  }
  void wrote(VStreamId v, uint64_t clock) {
    hot_[v.value].written.store(clock, std::memory_order_relaxed);
  }
  void set_pstream(VStreamId v, PStreamId p) {
    hot_[v.value].pstream.store(p.value, std::memory_order_relaxed);
    none_unused_.store(false, std::memory_order_relaxed);
  }

  // Clears the slots of displaced contexts. Then stores at most `limit` vStreams whose value, as
  // measure() fills it in, differs notably from the stored one. Returns at the first error of the
  // Store; the next call goes on. measure() runs under the table's mutex.
  Result<void> save_changed(uint32_t limit,
                            const std::function<void(VStreamId, SavedVStream&)>& measure);

 private:
  static constexpr size_t kEvictedAtOnce = 64;
  // Pages written between two searches for room, if a search finds none.
  static constexpr uint64_t kEvictAgainPages = 4096;
  struct Hot {
    std::atomic<uint64_t> born{0}, written{0};  // clocks
    std::atomic<uint16_t> pstream{0}, shown{0}, parent{0};
    std::atomic<uint8_t> generation{0};
  };
  struct Owner {
    size_t contexts = 0;
    uint64_t evict_from = 0;  // clock of the next search for room
  };
  void load() SFS_REQUIRES(mutex_);
  void load_contexts() SFS_REQUIRES(mutex_);
  Entry& add(VStreamId v, Source source, std::string name, uint64_t clock) SFS_REQUIRES(mutex_);
  // Returns the context's number, known or new; nothing if all numbers of contexts are in use.
  std::optional<VStreamId> add_context(const Context& context, uint32_t owner, uint64_t clock)
      SFS_REQUIRES(mutex_);
  void count_context(VStreamId v, Context context, uint32_t owner) SFS_REQUIRES(mutex_);
  std::optional<VStreamId> named(const std::string& name) const SFS_REQUIRES(mutex_);
  std::optional<VStreamId> free_number(uint16_t& next, uint16_t end) SFS_REQUIRES(mutex_);
  bool make_room(uint32_t owner, uint64_t clock) SFS_REQUIRES(mutex_);
  void give_up(VStreamId v) SFS_REQUIRES(mutex_);
  void show(VStreamId v, VStreamId as);
  VStreamId shown_above(const Context& context) const SFS_REQUIRES(mutex_);
  void split(const ContextSplit& split, uint64_t clock) SFS_REQUIRES(mutex_);
  void said(VStreamId v, Source source) SFS_REQUIRES(mutex_);
  std::vector<ContextSeen> contexts_seen() const SFS_REQUIRES(mutex_);
  PStreamId unused_pstream() SFS_REQUIRES(mutex_);
  std::optional<uint32_t> free_slot() SFS_REQUIRES(mutex_);
  Result<void> clear_slots() SFS_REQUIRES(mutex_);

  Store& store_;
  LifetimeTable& lifetimes_;
  const uint16_t pstream_count_;
  // Odd, so that all generations come round, and derived from the first generation, so that mounts
  // differ in it: if a crash lost a use of a number, the next mount's use gets another generation.
  const uint8_t generation_step_;
  std::vector<Hot> hot_;
  std::atomic<bool> none_unused_{false};  // every pStream is taken: skips the search
  mutable Mutex mutex_;                   // leaf
  std::map<VStreamId, Entry> entries_ SFS_GUARDED_BY(mutex_);
  std::unordered_map<std::string, VStreamId> names_ SFS_GUARDED_BY(mutex_);
  std::unordered_map<uint32_t, Owner> owners_ SFS_GUARDED_BY(mutex_);  // of contexts
  std::vector<bool> slots_ SFS_GUARDED_BY(mutex_);
  std::vector<uint32_t> to_clear_ SFS_GUARDED_BY(mutex_);  // slots of displaced contexts
  size_t contexts_ SFS_GUARDED_BY(mutex_) = 0;
  uint16_t next_named_ SFS_GUARDED_BY(mutex_) = kFirstNamed;
  uint16_t next_context_ SFS_GUARDED_BY(mutex_) = kFirstNamed;
  uint64_t numbers_from_ SFS_GUARDED_BY(mutex_) = 0;  // clock of the next search for a number
  size_t next_slot_ SFS_GUARDED_BY(mutex_) = 0;
  VStreamId save_from_ SFS_GUARDED_BY(mutex_){};
};

}  // namespace streamfs::placement
