#include "fuse-fs/data/write_cache.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::data {
namespace {

// Limits the data that flushes have to write beside that of their callers. It is little to any SSD.
constexpr uint64_t kBlocksASecond = (16ULL << 20) / kBlockSize;

}  // namespace

void WriteCache::FreeMemory::operator()(std::byte* memory) const {
  std::free(memory);
}

WriteCache::WriteCache(blockdev::Device& beneath, uint64_t blocks_max, Clock& clock)
    : ForwardingDevice(beneath),
      pages_max_(blocks_max),
      clock_(clock),
      used_(blocks_max),
      free_pages_(blocks_max),
      allowance_(blocks_max),
      refilled_ms_(clock.monotonic_ms()) {
  if (blocks_max == 0) return;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kBlockSize, blocks_max * kBlockSize)));
  if (memory_ == nullptr) throw std::bad_alloc();
}

WriteCache::~WriteCache() = default;

WriteCache::Still::Still(WriteCache& of) : of_(of) {
  const MutexLock lock(of_.mutex_);
  ++of_.stills_;
}

WriteCache::Still::~Still() {
  const MutexLock lock(of_.mutex_);
  --of_.stills_;
}

void WriteCache::return_allowance(uint64_t blocks) {
  allowance_ = std::min(allowance_ + blocks, pages_max_);
}

void WriteCache::refill() {
  const uint64_t now = clock_.monotonic_ms();
  const uint64_t more = (now - refilled_ms_) * kBlocksASecond / 1000;
  if (more == 0) return;
  refilled_ms_ = now;
  return_allowance(more);
}

bool WriteCache::touches(const Entries& entries, uint64_t first, uint64_t end) {
  const auto at = entries.lower_bound(first);
  return at != entries.end() && at->first < end;
}

bool WriteCache::all_replaceable(uint64_t first, uint64_t count) const {
  auto at = cached_.find(first);
  for (uint64_t i = 0; i < count; ++i, ++at) {
    if (at == cached_.end() || at->first != first + i || at->second.place.sequence != 0)
      return false;
  }
  return true;
}

// Takes free pages in order, so that blocks written one after the other are adjacent in memory and
// go out in one request. The lowest free pages are taken first, so that no more memory is touched
// than is needed.
bool WriteCache::take_pages(uint64_t count, std::vector<uint32_t>& pages) {
  if (count > free_pages_) return false;
  pages.reserve(count);
  while (pages.size() < count) {
    if (!used_[cursor_]) {
      used_[cursor_] = true;
      pages.push_back(static_cast<uint32_t>(cursor_));
    }
    ++cursor_;
  }
  free_pages_ -= count;
  return true;
}

void WriteCache::give_back(uint32_t page) {
  used_[page] = false;
  cursor_ = std::min<uint64_t>(cursor_, page);
  ++free_pages_;
}

void WriteCache::count_entries() {
  entries_.store(cached_.size() + being_written_.size(), std::memory_order_release);
}

bool WriteCache::put(InodeId owner, BlockNo first, ConstBytes bytes, blockdev::WriteTag tag,
                     bool fresh) {
  if (pages_max_ == 0) return false;
  if (!nothing() && replace(first, bytes, tag)) return true;
  return fresh && add(owner, first, bytes, tag);
}

bool WriteCache::takes(uint64_t fresh) {
  if (pages_max_ == 0) return false;
  const MutexLock lock(mutex_);
  refill();
  return stills_ == 0 && fresh <= allowance_ && fresh <= free_pages_;
}

bool WriteCache::holds(BlockNo first, uint64_t count) const {
  if (nothing()) return false;
  const MutexLock lock(mutex_);
  return stills_ == 0 && all_replaceable(first.value, count);
}

void WriteCache::asked_for(InodeId owner) {
  if (nothing()) return;
  const MutexLock lock(mutex_);
  const auto charged = charged_.find(owner);
  if (charged == charged_.end()) return;
  return_allowance(charged->second);
  charged_.erase(charged);
}

// Copies under the lock, because usually only the last block of an append is cached already.
bool WriteCache::replace(BlockNo first, ConstBytes bytes, blockdev::WriteTag tag) {
  const uint64_t count = bytes.size() / kBlockSize;
  const MutexLock lock(mutex_);
  if (stills_ > 0 || !all_replaceable(first.value, count)) return false;
  auto at = cached_.find(first.value);
  for (uint64_t i = 0; i < count; ++i, ++at) {
    at->second.tag = tag;
    std::memcpy(page(at->second.page).data(), bytes.data() + i * kBlockSize, kBlockSize);
  }
  return true;
}

bool WriteCache::add(InodeId owner, BlockNo first, ConstBytes bytes, blockdev::WriteTag tag) {
  const uint64_t count = bytes.size() / kBlockSize;
  std::vector<uint32_t> pages;
  {
    const MutexLock lock(mutex_);
    refill();
    if (stills_ > 0 || count > allowance_ || touches(cached_, first.value, first.value + count) ||
        !take_pages(count, pages))
      return false;
  }
  for (uint64_t i = 0; i < count; ++i)
    std::memcpy(page(pages[i]).data(), bytes.data() + i * kBlockSize, kBlockSize);
  const MutexLock lock(mutex_);
  if (stills_ > 0) {  // it began meanwhile
    for (const uint32_t page : pages) give_back(page);
    return false;
  }
  for (uint64_t i = 0; i < count; ++i) {
    cached_.emplace(first.value + i, Entry{.owner = owner, .page = pages[i], .tag = tag});
    if (logs_) unlogged_[owner].push_back(first.value + i);
  }
  const uint64_t charge = std::min(allowance_, count);
  allowance_ -= charge;
  if (charge > 0) charged_[owner] += charge;
  count_entries();
  return true;
}

// Uncharges a block of `owner`. `returned`: blocks to give back to the rate.
void WriteCache::discharge(InodeId owner, uint64_t returned) {
  const auto charged = charged_.find(owner);
  if (charged == charged_.end()) return;
  return_allowance(returned);
  if (--charged->second == 0) charged_.erase(charged);
}

// Returns the charge: no flush has to write these blocks.
void WriteCache::drop(uint64_t first, uint64_t end) {
  for (auto at = cached_.lower_bound(first); at != cached_.end() && at->first < end;) {
    if (at->second.place.sequence != 0) {
      if (cuts_ > 0) {
        freed_in_cut_.push_back((at++)->first);
        continue;
      }
      ++absorbed_;
    }
    give_back(at->second.page);
    discharge(at->second.owner, 1);
    at = cached_.erase(at);
    ++discarded_;
  }
  count_entries();
}

void WriteCache::discard(BlockNo first, uint64_t count) {
  if (nothing()) return;
  const MutexLock lock(mutex_);
  drop(first.value, first.value + count);
  const uint64_t end = first.value + count;
  for (auto at = being_written_.lower_bound(first.value);
       at != being_written_.end() && at->first < end; ++at)
    at->second.dead = true;
  drop_written(first.value, end);
}

// Drops data of these blocks that the device has, up to the write_out() of the number `by`.
void WriteCache::drop_written(uint64_t first, uint64_t end, uint64_t by) {
  for (auto at = being_written_.lower_bound(first);
       at != being_written_.end() && at->first < end;) {
    if (at->second.written == 0 || at->second.written > by) {
      ++at;
      continue;
    }
    give_back(at->second.page);
    at = being_written_.erase(at);
  }
  count_entries();
}

WriteCache::Counts WriteCache::counts() const {
  const MutexLock lock(mutex_);
  return {cached_.size(), discarded_, absorbed_};
}

bool WriteCache::crowded() const {
  const MutexLock lock(mutex_);
  return cached_.size() > pages_max_ - pages_max_ / 4;
}

void WriteCache::write(BlockNo first, ConstBytes bytes, blockdev::WriteTag tag,
                       blockdev::Completion done) {
  const uint64_t count = bytes.size() / kBlockSize;
  if (knows(first, count)) {
    Result<void> before = write_out(first.value, first.value + count, nullptr, Written::kDrop);
    if (!before.ok()) return done(std::move(before));
  }
  beneath_.write(first, bytes, tag, std::move(done));
}

// Returns whether a block's newest data is not on the device.
bool WriteCache::knows(BlockNo first, uint64_t count) const {
  if (nothing()) return false;
  const uint64_t end = first.value + count;
  const MutexLock lock(mutex_);
  return touches(cached_, first.value, end) || touches(being_written_, first.value, end);
}

std::vector<WriteCache::Found> WriteCache::find(BlockNo first, uint64_t count) const {
  std::vector<Found> found;
  const MutexLock lock(mutex_);
  for (uint64_t i = 0; i < count; ++i) {
    const Entry* entry = newest(first.value + i);
    if (entry == nullptr) continue;
    const ConstBytes bytes = page(entry->page);
    found.push_back({i, {bytes.begin(), bytes.end()}});
  }
  return found;
}

// Returns the newest entry of this block; null: its newest data is on the device.
template <typename Maps>
auto* WriteCache::newest_in(Maps& cached, Maps& being_written, uint64_t block) {
  if (const auto at = cached.find(block); at != cached.end()) return &at->second;
  const auto at = being_written.find(block);
  return at == being_written.end() ? nullptr : &at->second;
}

const WriteCache::Entry* WriteCache::newest(uint64_t block) const {
  return newest_in(cached_, being_written_, block);
}

WriteCache::Entry* WriteCache::newest(uint64_t block) {
  return newest_in(cached_, being_written_, block);
}

bool WriteCache::read_cached(BlockNo first, Bytes bytes) const {
  if (nothing()) return false;
  const MutexLock lock(mutex_);
  for (uint64_t i = 0; i < bytes.size() / kBlockSize; ++i) {
    const Entry* entry = newest(first.value + i);
    if (entry == nullptr) return false;
    std::memcpy(bytes.data() + i * kBlockSize, page(entry->page).data(), kBlockSize);
  }
  return true;
}

// The cache is searched before the device is read: a block that is not found then is already on the
// device.
void WriteCache::read(BlockNo first, Bytes bytes, blockdev::Completion done) {
  if (nothing()) return beneath_.read(first, bytes, std::move(done));
  if (read_cached(first, bytes)) return done({});
  std::vector<Found> found = find(first, bytes.size() / kBlockSize);
  if (found.empty()) return beneath_.read(first, bytes, std::move(done));
  beneath_.read(
      first, bytes, [bytes, found = std::move(found), done = std::move(done)](Result<void> result) {
        for (const Found& one : found)
          std::memcpy(bytes.data() + one.index * kBlockSize, one.bytes.data(), kBlockSize);
        done(std::move(result));
      });
}

// Waits until writes of these blocks have arrived.
Result<void> WriteCache::trim(BlockNo first, uint64_t count) {
  discard(first, count);
  if (knows(first, count)) {
    const MutexLock until_it_is_there(write_out_);
  }
  return beneath_.trim(first, count);
}

// Concurrent calls wait for each other: one may be writing blocks that another needs on the device.
Result<void> WriteCache::write_out(Owners* failed) {
  if (nothing()) return {};
  return write_out(0, UINT64_MAX, failed, logs_ ? Written::kKeep : Written::kDrop);
}

Result<void> WriteCache::write_out(uint64_t first_block, uint64_t end, Owners* failed,
                                   Written written) {
  const MutexLock one_at_a_time(write_out_);
  const std::vector<Run> runs = begin_writing(first_block, end);
  std::vector<std::unique_ptr<blockdev::IoBatch>> batches;  // of a run each: which one failed?
  for (const Run& run : runs) {
    const ConstBytes bytes{page(run.page).data(), run.count * kBlockSize};
    batches.push_back(std::make_unique<blockdev::IoBatch>(beneath_));
    batches.back()->write(BlockNo{run.first}, bytes, run.tag);
  }
  Result<void> first;
  for (size_t i = 0; i < runs.size(); ++i) {
    Result<void> done = batches[i]->wait();
    if (done.ok()) continue;
    mark_failed(runs[i]);
    if (first.ok()) first = std::move(done);
  }
  Owners owners = end_writing(written);
  if (written == Written::kDrop) {
    const MutexLock lock(mutex_);
    drop_written(first_block, end);  // of an earlier call
  }
  if (failed != nullptr) *failed = std::move(owners);
  return first;
}

bool WriteCache::all_safe() const {
  const MutexLock lock(mutex_);
  return unsafe_.empty();
}

void WriteCache::mark_failed(const Run& run) {
  const MutexLock lock(mutex_);
  for (auto at = being_written_.find(run.first);
       at != being_written_.end() && at->first < run.first + run.count; ++at)
    at->second.failed = true;
}

uint64_t WriteCache::written_out() const {
  const MutexLock lock(mutex_);
  return write_outs_;
}

void WriteCache::flushed(Owners failed, uint64_t written_out) {
  const MutexLock lock(mutex_);
  unsafe_ = std::move(failed);
  if (!logs_) return;
  drop_written(0, UINT64_MAX, written_out);
  list_unlogged();
}

Result<void> WriteCache::safe(InodeId owner) const {
  const MutexLock lock(mutex_);
  if (!unsafe_.contains(owner)) return {};
  return Error{EIO, "data that was acknowledged cannot be written"};
}

// Returns the runs to be written, one request for blocks that are adjacent in memory. The pages do
// not change while they are written, because a write to their blocks takes other pages.
std::vector<WriteCache::Run> WriteCache::begin_writing(uint64_t first, uint64_t end) {
  std::vector<Run> runs;
  const MutexLock lock(mutex_);
  for (auto at = cached_.lower_bound(first); at != cached_.end() && at->first < end;) {
    discharge(at->second.owner, 0);
    if (const auto kept = being_written_.find(at->first); kept != being_written_.end()) {
      give_back(kept->second.page);  // older data, which the device has
      being_written_.erase(kept);
    }
    being_written_.insert(cached_.extract(at++));
  }
  for (const auto& [block, entry] : being_written_) {
    if (entry.written != 0) continue;
    const bool follows = !runs.empty() && runs.back().first + runs.back().count == block &&
                         runs.back().page + runs.back().count == entry.page &&
                         runs.back().tag.placement == entry.tag.placement &&
                         runs.back().tag.vstream == entry.tag.vstream;
    if (follows) {
      ++runs.back().count;
    } else {
      runs.push_back({block, 1, entry.page, entry.tag});
    }
  }
  count_entries();
  return runs;
}

WriteCache::Owners WriteCache::end_writing(Written written) {
  Owners failed;
  const MutexLock lock(mutex_);
  if (written == Written::kKeep) ++write_outs_;
  for (auto at = being_written_.begin(); at != being_written_.end();) {
    auto& [block, entry] = *at;
    const bool stays = entry.failed && !entry.dead;
    // A block that is freed in a Cut counts as failed, too: the round needs its data.
    if (stays || (entry.failed && cuts_ > 0)) failed.insert(entry.owner);
    entry.failed = false;
    if (!stays && !entry.dead && written == Written::kKeep && entry.written == 0)
      entry.written = write_outs_;
    if (entry.written != 0) {
      ++at;
      continue;
    }
    if (!stays || !cached_.try_emplace(block, entry).second) give_back(entry.page);
    at = being_written_.erase(at);
  }
  unsafe_.insert(failed.begin(), failed.end());
  count_entries();
  return failed;
}

}  // namespace streamfs::data
