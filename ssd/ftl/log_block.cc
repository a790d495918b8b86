#include "ssd/ftl/log_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "ssd/counters.h"
#include "ssd/ftl/nand.h"
#include "ssd/ftl/router.h"
#include "ssd/ftl/translation.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {
namespace {

constexpr uint32_t kMergeBlocks = 1;  // kept free for the next full merge

uint32_t logical_blocks(const Geometry& geometry) {
  return static_cast<uint32_t>(div_round_up(geometry.user_pages, geometry.pages_per_block));
}

}  // namespace

Result<std::unique_ptr<LogBlockFtl>> LogBlockFtl::make(const Geometry& geometry,
                                                       uint32_t log_blocks, Nand& nand,
                                                       Counters& counters) {
  const uint32_t data = logical_blocks(geometry);
  const uint32_t spare = geometry.blocks - std::min(geometry.blocks, data);
  if (spare < kMergeBlocks + 1 || log_blocks > spare - kMergeBlocks)
    return Error{EINVAL,
                 fmt::format("impossible geometry: {} of {} blocks hold data: no room for {} log "
                             "blocks and one for merges",
                             data, geometry.blocks, std::max(log_blocks, 1U))};
  if (geometry.pages_per_block == 0 || geometry.pages_per_block >= kNowhere)
    return Error{EINVAL, fmt::format("impossible geometry: log blocks of {} pages",
                                     geometry.pages_per_block)};
  return std::unique_ptr<LogBlockFtl>(new LogBlockFtl(
      geometry, log_blocks == 0 ? spare - kMergeBlocks : log_blocks, nand, counters));
}

LogBlockFtl::LogBlockFtl(const Geometry& geometry, uint32_t log_blocks, Nand& nand,
                         Counters& counters)
    : geometry_(geometry),
      nand_(nand),
      counters_(counters),
      data_(logical_blocks(geometry)),
      logs_(log_blocks),
      live_bits_(geometry.user_pages) {
  for (BlockIndex block = 0; block < geometry.blocks; ++block) free_.push_back(block);
}

int LogBlockFtl::write(Lpn first, uint32_t count, FrontierId /*frontier*/, uint16_t /*vstream*/,
                       const std::byte* data) {
  return write_each(first, count, data, nand_.page_bytes(), counters_,
                    [&](Lpn page, const std::byte* bytes) { return write_page(page, bytes); });
}

int LogBlockFtl::write_page(Lpn page, const std::byte* data) {
  const Data& block = data_[page / geometry_.pages_per_block];
  const bool next_in_data =
      block.log == kNoSlot && block.written == page % geometry_.pages_per_block;
  const int error = next_in_data ? append_to_data(page, data) : append_to_log(page, data);
  if (error == 0) live_bits_.set(page);
  return error;
}

int LogBlockFtl::append_to_data(Lpn page, const std::byte* data) {
  Data& home = data_[page / geometry_.pages_per_block];
  if (home.block == kNoBlock) home.block = take_free();
  const Spare spare{.page = page, .sequence = sequence_++, .padding = false, .in_place = true};
  if (const int error = nand_.program(page_of(home.block, home.written), spare, data); error != 0)
    return error;
  ++home.written;
  return 0;
}

int LogBlockFtl::append_to_log(Lpn page, const std::byte* data) {
  const uint32_t logical = page / geometry_.pages_per_block;
  const auto place = static_cast<uint16_t>(page % geometry_.pages_per_block);
  if (const int error = room_in_log(logical); error != 0) return error;
  Log& log = logs_[data_[logical].log];
  const bool in_place = log.in_place && place == log.written;
  const Spare spare{.page = page, .sequence = sequence_++, .padding = false, .in_place = in_place};
  if (const int error = nand_.program(page_of(log.block, log.written), spare, data); error != 0)
    return error;
  log.in_place = in_place;
  log.place[place] = static_cast<uint16_t>(log.written++);
  log.last_use = sequence_;
  if (log.in_place && log.written == geometry_.pages_per_block) return merge(data_[logical].log);
  return 0;
}

int LogBlockFtl::room_in_log(uint32_t logical) {
  const Slot slot = data_[logical].log;
  if (slot != kNoSlot && logs_[slot].written < geometry_.pages_per_block) return 0;
  if (slot != kNoSlot)
    if (const int error = merge(slot); error != 0) return error;
  return open_log(logical);
}

int LogBlockFtl::open_log(uint32_t logical) {
  auto unused = std::ranges::find(logs_, kNoBlock, &Log::block);
  if (unused == logs_.end()) {
    const Slot oldest = oldest_log();
    if (const int error = merge(oldest); error != 0) return error;
    unused = logs_.begin() + oldest;
  }
  *unused = Log{.block = take_free(), .owner = logical};
  unused->place.assign(geometry_.pages_per_block, kNowhere);
  data_[logical].log = static_cast<Slot>(unused - logs_.begin());
  return 0;
}

LogBlockFtl::Slot LogBlockFtl::oldest_log() const {
  Slot oldest = kNoSlot;
  for (Slot slot = 0; slot < logs_.size(); ++slot) {
    if (logs_[slot].block == kNoBlock) continue;
    if (oldest == kNoSlot || logs_[slot].last_use < logs_[oldest].last_use) oldest = slot;
  }
  return oldest;
}

int LogBlockFtl::merge(Slot slot) {
  const uint32_t logical = logs_[slot].owner;
  if (logs_[slot].in_place) return merge_in_place(slot);
  if (const int error = rewrite(logical); error != 0) return error;
  ++merges_.full;
  return 0;
}

// Switch and partial merge: the log block becomes the data block once it has the remaining pages.
int LogBlockFtl::merge_in_place(Slot slot) {
  Log& log = logs_[slot];
  const uint32_t logical = log.owner, from = log.written, end = end_of(logical);
  const BlockIndex block = log.block;
  for (uint32_t place = from; place < end; ++place) {
    if (const int error = carry_over(logical, block, place, place + 1); error != 0) return error;
    log.place[place] = static_cast<uint16_t>(log.written++);
  }
  ++(from == end ? merges_.switched : merges_.partial);
  close_log(logical);
  return become_data(logical, block, end);
}

// Full merge: copies the newest version of every page to a new data block, and erases the old
// blocks.
int LogBlockFtl::rewrite(uint32_t logical) {
  const BlockIndex target = take_free();
  const uint32_t end = end_of(logical);
  if (const int error = carry_over(logical, target, 0, end); error != 0) {
    (void)release(target);
    return error;
  }
  const Slot slot = data_[logical].log;
  const BlockIndex log = slot == kNoSlot ? kNoBlock : logs_[slot].block;
  close_log(logical);
  const int error = become_data(logical, target, end);
  return error != 0 || log == kNoBlock ? error : release(log);
}

int LogBlockFtl::carry_over(uint32_t logical, BlockIndex to, uint32_t from, uint32_t end) {
  for (uint32_t place = from; place < end; ++place) {
    const Ppn source = newest(logical, place);
    const Spare spare{.page = page_of(logical, place),
                      .sequence = sequence_++,
                      .padding = source == kNoPage,
                      .in_place = true};
    const Ppn at = page_of(to, place);
    const int error =
        source == kNoPage ? nand_.program(at, spare, nullptr) : nand_.copy(source, at, spare);
    if (error != 0) return error;
    ++(source == kNoPage ? counters_.pad_pages : counters_.gc_pages);
  }
  return 0;
}

int LogBlockFtl::become_data(uint32_t logical, BlockIndex block, uint32_t written) {
  Data& home = data_[logical];
  const BlockIndex old = std::exchange(home.block, block);
  home.written = written;
  return old == kNoBlock ? 0 : release(old);
}

void LogBlockFtl::close_log(uint32_t logical) {
  const Slot slot = std::exchange(data_[logical].log, kNoSlot);
  if (slot != kNoSlot) logs_[slot] = Log{};
}

// Returns where the newest version of a page is; kNoPage: the page is not live.
Ppn LogBlockFtl::newest(uint32_t logical, uint32_t place) const {
  const Lpn page = page_of(logical, place);
  if (page >= geometry_.user_pages || !live_bits_.test(page)) return kNoPage;
  const Data& home = data_[logical];
  if (home.log != kNoSlot && logs_[home.log].place[place] != kNowhere)
    return page_of(logs_[home.log].block, logs_[home.log].place[place]);
  return place < home.written ? page_of(home.block, place) : kNoPage;
}

// Returns the place after the last page written since the last merge, trimmed pages included.
// Recovery uses it to tell whether a full merge was finished.
uint32_t LogBlockFtl::end_of(uint32_t logical) const {
  const Data& home = data_[logical];
  if (home.log == kNoSlot) return home.written;
  const auto& place = logs_[home.log].place;
  const auto last =
      std::find_if(place.rbegin(), place.rend(), [](uint16_t at) { return at != kNowhere; });
  return std::max(home.written, static_cast<uint32_t>(place.rend() - last));
}

Ppn LogBlockFtl::location(Lpn page) const {
  return newest(page / geometry_.pages_per_block, page % geometry_.pages_per_block);
}

void LogBlockFtl::trim(Lpn page) {
  if (!live_bits_.test(page)) return;
  ++counters_.trimmed_pages;
  unmap(page);
}

void LogBlockFtl::unmap(Lpn page) {
  live_bits_.clear(page);
  drop_if_empty(page / geometry_.pages_per_block);
}

// Releases the flash of a logical block without live pages. A block whose erase fails stays out of
// use until recover().
void LogBlockFtl::drop_if_empty(uint32_t logical) {
  const Lpn first = page_of(logical, 0);
  const uint32_t pages = std::min(geometry_.pages_per_block, geometry_.user_pages - first);
  bool any = false;
  live_bits_.for_each_set(first, pages, [&](uint64_t) { any = true; });
  if (any) return;
  Data& home = data_[logical];
  const BlockIndex log = home.log == kNoSlot ? kNoBlock : logs_[home.log].block;
  const BlockIndex data = std::exchange(home.block, kNoBlock);
  home.written = 0;
  close_log(logical);
  if (data != kNoBlock) (void)release(data);
  if (log != kNoBlock) (void)release(log);
}

uint64_t LogBlockFtl::ram_bytes() const {
  const uint64_t block_bytes = geometry_.blocks > UINT16_MAX ? 4 : 2;
  const uint64_t place_bytes = geometry_.pages_per_block > UINT8_MAX ? 2 : 1;
  const uint64_t log = 2 * block_bytes + 4 + geometry_.pages_per_block * place_bytes;
  return data_.size() * (block_bytes + place_bytes) + logs_.size() * log +
         div_round_up(geometry_.user_pages, 8);
}

uint64_t LogBlockFtl::live_pages() const {
  uint64_t live = 0;
  live_bits_.for_each_set(0, geometry_.user_pages, [&](uint64_t) { ++live; });
  return live;
}

int LogBlockFtl::release(BlockIndex block) {
  if (!read_only_) {
    if (const int error = nand_.erase(block); error != 0) return error;
    ++counters_.erases;
  }
  free_.push_back(block);
  return 0;
}

BlockIndex LogBlockFtl::take_free() {
  SFS_ASSERT(!free_.empty());
  const BlockIndex block = free_.front();
  free_.pop_front();
  return block;
}

}  // namespace streamfs::ssd
