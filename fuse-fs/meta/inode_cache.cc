#include "fuse-fs/meta/inode_cache.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::meta {
namespace {

// InodeCache counts these bytes, and evicts in these steps.
constexpr int64_t kUnitBytes = sizeof(InodeEntries) + 64;  // with a node of the map, its bucket
constexpr uint64_t kControlBytes = 32;                     // allocated beside an inode
constexpr int64_t kUncountedBytesMax = 4 * 1024;           // a shard adds more than these to bytes_
constexpr size_t kEvictedAtOnce = 16, kBucketsAtOnce = 16;
constexpr uint64_t kRoundsMost = 200;  // rounds that an unused inode of the limit's size stays
constexpr uint64_t kGrownBytes = 64 * 1024;  // growth before the next search after one in vain

void prefetch(const void* object, size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(object);
  for (size_t at = 0; at < bytes; at += kLineSize) __builtin_prefetch(first + at);
}

}  // namespace

InodeRef& InodeRef::operator=(InodeRef&& other) noexcept {
  if (this != &other) {
    reset();
    cache_ = other.cache_;
    inode_ = std::move(other.inode_);
  }
  return *this;
}

void InodeRef::reset() {
  if (inode_ == nullptr) return;
  cache_->unpin(inode_);
  inode_.reset();
}

void InodeCache::count_bytes(Shard& at, int64_t bytes) {
  at.uncounted += bytes;
  if (std::abs(at.uncounted) < kUncountedBytesMax) return;
  bytes_.fetch_add(std::exchange(at.uncounted, 0), std::memory_order_relaxed);
}

void InodeCache::charge(Shard& at, Entry& entry, uint64_t bytes) {
  count_bytes(at, static_cast<int64_t>(bytes) - static_cast<int64_t>(entry.bytes));
  entry.bytes = bytes;
}

InodeEntry* InodeCache::known(Shard& at, InodeId id) {
  const auto unit = at.units.find(inode_unit(id));
  return unit != at.units.end() ? &unit->second.of(id) : nullptr;
}

InodeEntry& InodeCache::to_use(Shard& at, InodeId id) {
  const auto [unit, is_new] = at.units.try_emplace(inode_unit(id));
  if (is_new) count_bytes(at, kUnitBytes);
  Entry& entry = unit->second.of(id);
  if (!entry.used()) ++unit->second.used;
  return entry;
}

void InodeCache::unuse(Shard& at, Entry& entry, InodeId id) {
  charge(at, entry, 0);
  let_go(entry);
  entry = {};
  const auto unit = at.units.find(inode_unit(id));
  if (--unit->second.used > 0) return;
  at.units.erase(unit);
  count_bytes(at, -kUnitBytes);
}

uint64_t InodeCache::bytes() const {
  return static_cast<uint64_t>(std::max<int64_t>(bytes_.load(std::memory_order_relaxed), 0));
}

// Detaches the inode from its entry. An operation that still has the inode pinned must not touch
// the entry any more.
void InodeCache::let_go(Entry& entry) {
  if (entry.inode) entry.inode->entry = nullptr;
}

InodeRef InodeCache::pin(Entry& entry) {
  ++entry.pins;
  entry.inode->entry = &entry;
  return {*this, entry.inode};
}

Result<InodeRef> InodeCache::get(InodeId id) {
  Shard& at = shard(id);
  const MutexLock lock(at.mutex);
  Entry* const found = known(at, id);
  if (found != nullptr && found->inode) return pin(*found);
  // No operation can be changing an inode that is not in memory, so its image does not change.
  SFS_ASSIGN(const InodeImage image, read_inode(heap_, id));
  Entry& entry = to_use(at, id);
  entry.inode = std::make_shared<Inode>(id, image);
  return pin(entry);
}

InodeRef InodeCache::find(InodeId id) {
  Shard& at = shard(id);
  const MutexLock lock(at.mutex);
  Entry* const found = known(at, id);
  return found != nullptr && found->inode ? pin(*found) : InodeRef();
}

InodeRef InodeCache::insert(InodeId id, const InodeImage& image, std::unique_lock<Mutex>& lock) {
  auto inode = std::make_shared<Inode>(id, image);
  // No other thread knows the new inode yet, so this need not wait. It must not: the inode's number
  // may be below that of its parent, whose lock is held.
  lock = std::unique_lock(inode->mutex, std::try_to_lock);
  SFS_ASSERT(lock.owns_lock());
  Shard& at = shard(id);
  const MutexLock shard_lock(at.mutex);
  Entry& entry = to_use(at, id);
  charge(at, entry, 0);
  let_go(entry);
  entry = Entry{.inode = std::move(inode)};
  return pin(entry);
}

void InodeCache::erase(Inode& inode) {
  Shard& at = shard(inode.id);
  const MutexLock lock(at.mutex);
  if (inode.entry == nullptr) return;
  unuse(at, *inode.entry, inode.id);
}

void InodeCache::add_lookup(Inode& pinned) {
  const MutexLock lock(shard(pinned.id).mutex);
  if (pinned.entry != nullptr) ++pinned.entry->lookups;
}

bool InodeCache::add_lookup_if_free(Entry& entry, size_t place, const Show& show) {
  if (!entry.inode) return false;
  const std::unique_lock lock(entry.inode->mutex, std::try_to_lock);
  if (!lock.owns_lock() || !entry.inode->alive) return false;
  ++entry.lookups;
  show(place, *entry.inode);
  return true;
}

// Calls `visit` for each run of ids that share a unit, as files made one after the other do. Such a
// run takes one lock, and the waits for its inodes' memory overlap.
template <typename Visit>
void InodeCache::visit_units(std::span<const InodeId> ids, Visit visit) {
  for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
    const uint64_t number = inode_unit(ids[begin]);
    while (end < ids.size() && inode_unit(ids[end]) == number) ++end;
    Shard& at = shard(ids[begin]);
    const MutexLock lock(at.mutex);
    const auto unit = at.units.find(number);
    InodeEntries* const entries = unit == at.units.end() ? nullptr : &unit->second;
    for (size_t i = begin; entries != nullptr && i < end; ++i) {
      if (const auto& inode = entries->of(ids[i]).inode) prefetch(inode.get(), sizeof(Inode));
    }
    visit(begin, end, entries);
  }
}

std::vector<size_t> InodeCache::add_lookups(std::span<const InodeId> ids, const Show& show) {
  std::vector<size_t> rest;
  visit_units(ids, [&](size_t begin, size_t end, InodeEntries* entries) {
    for (size_t i = begin; i < end; ++i) {
      if (entries == nullptr || !add_lookup_if_free(entries->of(ids[i]), i, show)) {
        rest.push_back(i);
      }
    }
  });
  return rest;
}

void InodeCache::warm(std::span<const InodeId> ids) {
  visit_units(ids, [](size_t, size_t, const InodeEntries*) {});
}

std::vector<InodeId> InodeCache::looked_up() {
  std::vector<InodeId> out;
  for (Shard& at : shards_) {
    const MutexLock lock(at.mutex);
    for (const auto& [unit, entries] : at.units) {
      for (size_t i = 0; i < kInodesPerUnit; ++i) {
        if (entries.all[i].lookups > 0) out.push_back(InodeId{unit * kInodesPerUnit + i});
      }
    }
  }
  return out;
}

uint64_t InodeCache::drop_lookups(InodeId id, uint64_t count) {
  Shard& at = shard(id);
  const MutexLock lock(at.mutex);
  Entry* const entry = known(at, id);
  if (entry == nullptr || !entry->used()) return 0;
  const uint64_t left = entry->lookups -= std::min(count, entry->lookups);
  if (!entry->used()) unuse(at, *entry, id);  // it is not in memory and could not be read again
  return left;
}

void InodeCache::unpin(const std::shared_ptr<Inode>& inode) {
  std::shared_ptr<Inode> last;  // destroyed outside the lock
  Shard& at = shard(inode->id);
  {
    const MutexLock lock(at.mutex);
    if (inode->entry == nullptr) return;
    Entry& entry = *inode->entry;
    if (--entry.pins > 0) return;
    // Without pins no operation can reach the inode: its fields may be read without its mutex.
    const bool needed = entry.lookups > 0 || inode->dirty();
    charge(at, entry, needed ? kControlBytes + inode->bytes() : 0);
    const uint64_t rounds = kRoundsMost * entry.bytes / (limit_bytes_ + 1);
    entry.rounds = static_cast<uint32_t>(1 + std::min(rounds, kRoundsMost));
    if (!needed) {
      last = entry.inode;
      unuse(at, entry, inode->id);
    }
  }
  if (bytes() > std::max(limit_bytes_, in_vain_below_.load(std::memory_order_relaxed))) evict();
}

// The clock algorithm, over the shards in turn. An inode that was used since the hand last came by
// stays, and a large one, which took much work to read, stays for more rounds. If there is nothing
// to evict, the next search waits until the cache has grown.
void InodeCache::evict() {
  Evicted gone;  // destroyed outside the locks
  bool later = false;
  for (size_t tried = 0; tried < kShards && gone.size() < kEvictedAtOnce; ++tried) {
    Shard& next = shards_[next_shard_.fetch_add(1, std::memory_order_relaxed) % kShards];
    later |= evict_from(next, gone);
  }
  const bool in_vain = gone.empty() && !later;
  in_vain_below_.store(in_vain ? bytes() + kGrownBytes : 0, std::memory_order_relaxed);
}

// Evicts from a shard. Returns whether another round may find more there.
bool InodeCache::evict_from(Shard& at, Evicted& gone) {
  const MutexLock lock(at.mutex);
  bool later = false;
  const size_t buckets = std::min(kBucketsAtOnce, at.units.bucket_count());
  for (size_t looks = 0; looks < buckets; ++looks) {
    at.hand = (at.hand + 1) % at.units.bucket_count();
    for (auto it = at.units.begin(at.hand); it != at.units.end(at.hand); ++it) {
      for (Entry& entry : it->second.all) later |= evict_entry(at, entry, gone);
    }
  }
  return later;
}

bool InodeCache::evict_entry(Shard& at, Entry& entry, Evicted& gone) {
  if (!entry.inode || entry.pins > 0 || entry.inode->dirty()) return false;
  if (entry.rounds > 0) {
    --entry.rounds;
    return true;
  }
  let_go(entry);
  gone.push_back(std::move(entry.inode));
  charge(at, entry, 0);
  return true;
}

InodeLocks::~InodeLocks() {
  if (!locked_) return;
  for (size_t i = 0; i < count_; ++i) refs_[i]->mutex.unlock();
}

Inode* InodeLocks::find(InodeId id) const {
  for (size_t i = 0; i < count_; ++i) {
    if (refs_[i]->id == id) return refs_[i].get();
  }
  return nullptr;
}

void InodeLocks::add(InodeRef ref) {
  SFS_ASSERT(count_ < kMost && !locked_ && !contains(ref->id));
  refs_[count_++] = std::move(ref);
}

void InodeLocks::lock() {
  std::ranges::sort(std::span(refs_).first(count_), {},
                    [](const InodeRef& ref) { return ref->id; });
  for (size_t i = 0; i < count_; ++i) refs_[i]->mutex.lock();
  locked_ = true;
}

bool InodeLocks::try_lock(InodeRef ref) {
  SFS_ASSERT(count_ < kMost && locked_ && !contains(ref->id));
  if (!ref->mutex.try_lock()) return false;
  refs_[count_++] = std::move(ref);
  return true;
}

Inode& InodeLocks::operator[](InodeId id) const {
  Inode* const inode = find(id);
  SFS_ASSERT(inode != nullptr);
  return *inode;
}

}  // namespace streamfs::meta
