// The write cache's part for an intent log: which blocks are logged, and which a round needs.
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/types.h"
#include "fuse-fs/data/write_cache.h"

namespace streamfs::data {

WriteCache::Cut::Cut(WriteCache& of) : of_(of) {
  const MutexLock lock(of_.mutex_);
  ++of_.cuts_;
}

WriteCache::Cut::~Cut() {
  const MutexLock lock(of_.mutex_);
  if (--of_.cuts_ > 0) return;
  for (const uint64_t block : std::exchange(of_.freed_in_cut_, {})) of_.drop(block, block + 1);
}

void WriteCache::builds_on(BlockNo block, BlockNo old) {
  if (!logs_ || nothing()) return;
  const MutexLock lock(mutex_);
  const auto at = cached_.find(block.value);
  const Entry* const base = newest(old.value);
  if (at == cached_.end() || base == nullptr || base->place.sequence == 0) return;
  at->second.builds_on = old.value;
}

uint64_t WriteCache::unlogged(InodeId owner) const {
  if (!logs_ || nothing()) return 0;
  const MutexLock lock(mutex_);
  const auto listed = unlogged_.find(owner);
  if (listed == unlogged_.end()) return 0;
  uint64_t blocks = 0;
  for (const uint64_t block : listed->second) {
    const Entry* const entry = newest(block);
    const bool counts = entry != nullptr && entry->owner == owner && !entry->dead;
    if (counts && entry->place.sequence == 0) ++blocks;
  }
  return blocks;
}

// Copies each block under the lock, because its page may be written out and given to another block
// at any time. The lock is given up between blocks, because a copy takes a microsecond.
std::vector<BlockNo> WriteCache::log(InodeId owner, uint64_t most, meta::IntentLog::Batch& batch) {
  std::vector<BlockNo> done;
  std::vector<uint64_t> listed;
  {
    const MutexLock lock(mutex_);
    if (const auto found = unlogged_.find(owner); found != unlogged_.end()) {
      listed = std::move(found->second);
      unlogged_.erase(found);
    }
  }
  for (const uint64_t block : listed) {
    const MutexLock lock(mutex_);
    Entry* const entry = newest(block);
    if (entry == nullptr || entry->owner != owner || entry->dead || entry->place.sequence != 0)
      continue;
    if (done.size() == most) {  // more than unlogged() said
      unlogged_[owner].push_back(block);
      continue;
    }
    meta::IntentLog::Content content{owner, BlockNo{block}, entry->tag.vstream, page(entry->page)};
    if (const Entry* base = entry->builds_on != 0 ? newest(entry->builds_on) : nullptr;
        base != nullptr && base->owner == owner && base->place.sequence != 0) {
      content.base = base->place;
      content.base_bytes = page(base->page);
    }
    entry->place = batch.append(content);
    done.push_back(BlockNo{block});
  }
  return done;
}

void WriteCache::not_logged(std::span<const BlockNo> blocks) {
  const MutexLock lock(mutex_);
  for (const BlockNo block : blocks) {
    Entry* const entry = newest(block.value);
    if (entry == nullptr) continue;
    entry->place = {};
    unlogged_[entry->owner].push_back(block.value);
  }
}

// Lists the blocks that are not logged anew, which forgets blocks that are gone.
void WriteCache::list_unlogged() {
  unlogged_.clear();
  for (const Entries* entries : {&cached_, &being_written_}) {
    for (const auto& [block, entry] : *entries) {
      const bool newest = entries == &cached_ || !cached_.contains(block);
      if (newest && entry.place.sequence == 0) unlogged_[entry.owner].push_back(block);
    }
  }
}

}  // namespace streamfs::data
