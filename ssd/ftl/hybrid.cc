#include "ssd/ftl/hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "pmem/region.h"
#include "ssd/counters.h"
#include "ssd/ftl/hybrid_layout.h"
#include "ssd/ftl/nand.h"
#include "ssd/ftl/router.h"
#include "ssd/ftl/translation.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {
namespace {

uint64_t shape_of(const Geometry& geometry) {
  return uint64_t{geometry.pages_per_block} << 32 | geometry.blocks;
}

Result<void> check_fits(const Geometry& geometry, const pmem::Region& region) {
  const uint64_t needed = div_round_up(geometry.user_pages, geometry.pages_per_block) +
                          geometry.low_water + kHybridFrontiers + 1;
  if (geometry.low_water == 0 || geometry.low_water >= kHybridPool)
    return Error{EINVAL, fmt::format("impossible geometry: {} free blocks for collections, not 1 "
                                     "to {}",
                                     geometry.low_water, kHybridPool - 1)};
  if (geometry.pages_per_block == 0 || geometry.blocks < needed)
    return Error{EINVAL, fmt::format("impossible geometry: {} blocks, of which user data, open and "
                                     "free blocks take {}",
                                     geometry.blocks, needed)};
  if (region.size() < HybridFtl::region_bytes(geometry))
    return Error{EINVAL, fmt::format("the FTL's persistent memory has {} bytes and needs {}",
                                     region.size(), HybridFtl::region_bytes(geometry))};
  return {};
}

}  // namespace

Result<void> HybridFtl::format(const Geometry& geometry, pmem::Region& region) {
  SFS_TRY(check_fits(geometry, region));
  region.store_word(HybridLayout::header(0), 0);  // until all else is there
  region.fence(region.flush(0, kWordSize));
  region.store_zeroes(kWordSize, region_bytes(geometry) - kWordSize);
  region.store_word(HybridLayout::header(1), geometry.user_pages);
  region.store_word(HybridLayout::header(2), shape_of(geometry));
  region.fence(region.flush(0, region_bytes(geometry)));
  region.store_word(HybridLayout::header(0), wire::kHybridMagic);
  region.fence(region.flush(0, kWordSize));
  return {};
}

Result<std::unique_ptr<HybridFtl>> HybridFtl::open(const Geometry& geometry, pmem::Region& region,
                                                   Nand& nand, Counters& counters) {
  if (region.size() < kLineSize || region.load(HybridLayout::header(0)) != wire::kHybridMagic)
    return Error{EINVAL, "not the persistent memory of a hybrid FTL"};
  const uint64_t user = region.load(HybridLayout::header(1)),
                 shape = region.load(HybridLayout::header(2));
  if (user != geometry.user_pages || shape != shape_of(geometry))
    return Error{EINVAL,
                 fmt::format("the FTL's persistent memory is of a device of {} user pages on {} "
                             "blocks of {}, and this one has {} on {} of {}",
                             user, shape & UINT32_MAX, shape >> 32, geometry.user_pages,
                             geometry.blocks, geometry.pages_per_block)};
  SFS_TRY(check_fits(geometry, region));
  std::unique_ptr<HybridFtl> ftl(new HybridFtl(geometry, region, nand, counters));
  ftl->words_read_ = 3;
  if (const int error = ftl->start(); error != 0)
    return Error{error, "hybrid FTL: damaged persistent memory or spare areas"};
  return ftl;
}

HybridFtl::HybridFtl(const Geometry& geometry, pmem::Region& region, Nand& nand, Counters& counters)
    : geometry_(geometry), layout_(geometry), region_(region), nand_(nand), counters_(counters) {}

// Recovers after a power cut: takes a frontier out of the free pool, and sets late dead bits.
int HybridFtl::start() {
  uint64_t never_used = load(HybridLayout::never_used());
  if (never_used > geometry_.blocks) return EIO;
  for (uint32_t name = 0; name < kHybridFrontiers; ++name) {
    const uint64_t number = load(HybridLayout::open(name));
    if (number == 0) continue;
    if (number > geometry_.blocks) return EIO;
    open_[name].block = static_cast<BlockIndex>(number - 1);
    if (number > never_used) store(HybridLayout::never_used(), never_used = number);
    for (uint32_t slot = 0; slot < kHybridPool; ++slot)
      if (load(HybridLayout::pool(slot)) == number) store(HybridLayout::pool(slot), 0);
    if (const int error = find_end(open_[name]); error != 0) return error;
  }
  for (const Frontier& frontier : open_)
    if (const int error = redo_last(frontier); error != 0) return error;
  fence();
  return 0;
}

int HybridFtl::find_end(Frontier& frontier) {
  uint32_t none = geometry_.pages_per_block + 1, some = 0;  // bounds of the programmed pages
  while (none - some > 1) {
    const uint32_t middle = some + (none - some) / 2;
    frontier.written = middle - 1;
    (nand_.spare(next_page(frontier)) ? some : none) = middle;
  }
  frontier.written = some;
  return 0;
}

// Settles the last programmed page of a frontier: either it counts and the page that it replaced
// does not, or it does not count. The replaced page may have been erased and programmed anew since.
int HybridFtl::redo_last(const Frontier& frontier) {
  if (frontier.block == kNoBlock || frontier.written == 0) return 0;
  const Ppn last = next_page(frontier) - 1;
  const std::optional<Spare> spare = nand_.spare(last);
  if (!spare) return EIO;
  if (spare->page == kUnknownPage) return 0;
  if (spare->page >= geometry_.user_pages || location(spare->page) != last) {
    bury(last);
    return 0;
  }
  if (spare->replaced == kNoPage) return 0;
  if (spare->replaced >= geometry_.physical_pages()) return EIO;
  const std::optional<Spare> before = nand_.spare(spare->replaced);
  if (before && before->page == spare->page) bury(spare->replaced);
  return 0;
}

int HybridFtl::write(Lpn first, uint32_t count, FrontierId /*frontier*/, uint16_t /*vstream*/,
                     const std::byte* data) {
  return write_each(first, count, data, nand_.page_bytes(), counters_,
                    [&](Lpn page, const std::byte* bytes) { return write_page(page, bytes); });
}

int HybridFtl::write_page(Lpn page, const std::byte* data) {
  if (const int error = host_room(); error != 0) return error;
  const Ppn before = location(page), at = next_page(open_[kHost]);
  if (before != kNoPage && before >= geometry_.physical_pages()) return EIO;
  const Spare spare{.page = page, .replaced = before, .padding = false};
  if (const int error = nand_.program(at, spare, data); error != 0) return error;
  ++open_[kHost].written;
  point(page, at);
  if (before != kNoPage) bury(before);
  return 0;
}

void HybridFtl::trim(Lpn page) {
  const Ppn before = location(page);
  if (before >= geometry_.physical_pages()) return;  // kNoPage, or damage
  point(page, kNoPage);
  bury(before);
  fence();
  ++counters_.trimmed_pages;
}

int HybridFtl::flush() {
  fence();
  return 0;
}

Ppn HybridFtl::location(Lpn page) const {
  const uint64_t offset = layout_.map(page);
  const uint64_t word = load(round_down(offset, kWordSize));
  return static_cast<uint32_t>(word >> (offset % kWordSize * 8)) - 1;
}

void HybridFtl::point(Lpn page, Ppn at) {
  region_.store_half(layout_.map(page), at + 1);
  flushed_ += region_.flush(layout_.map(page), sizeof(uint32_t));
  fence();
}

void HybridFtl::bury(Ppn page) {
  const uint32_t place = page % geometry_.pages_per_block;
  const uint64_t offset = layout_.dead(page / geometry_.pages_per_block, place / 64);
  store(offset, load(offset) | uint64_t{1} << (place % 64));
}

// Searches the whole map; kNoPage: no page is there.
Lpn HybridFtl::owner_of(Ppn at) const {
  for (Lpn page = 0; page < geometry_.user_pages; ++page)
    if (location(page) == at) return page;
  return kNoPage;
}

// Makes room for a write of the host, which leaves `low_water` free blocks to collections. A
// collection needs one at a time.
int HybridFtl::host_room() {
  while (full(open_[kHost])) {
    if (free_blocks() > geometry_.low_water) {
      if (const int error = open_block(kHost); error != 0) return error;
      continue;
    }
    const BlockIndex victim = choose_victim();
    if (victim == kNoBlock) return ENOSPC;
    if (const int error = collect(victim, UINT64_MAX); error != 0) return error;
  }
  return 0;
}

int HybridFtl::open_block(FrontierName name) {
  const uint64_t fresh = load(HybridLayout::never_used());
  uint32_t slot = 0;
  while (fresh == geometry_.blocks && load(HybridLayout::pool(slot)) == 0)
    if (++slot == kHybridPool) return ENOSPC;
  const uint64_t number = fresh < geometry_.blocks ? fresh + 1 : load(HybridLayout::pool(slot));
  if (number > geometry_.blocks) return EIO;
  const auto block = static_cast<BlockIndex>(number - 1);
  for (uint32_t word = 0; word < layout_.dead_words(); ++word) store(layout_.dead(block, word), 0);
  fence();
  store(HybridLayout::open(name), number);
  fence();
  if (fresh < geometry_.blocks) {
    store(HybridLayout::never_used(), number);
  } else {
    store(HybridLayout::pool(slot), 0);
  }
  fence();
  open_[name] = {block, 0};
  return 0;
}

// This may take the last free block. The next victim, greedily chosen, has no more live pages than
// this one has left, so they fit into the copies' open block, and its erase frees a block.
bool HybridFtl::collect_some(uint32_t valid_limit, uint32_t most) {
  const BlockIndex victim = pooled() == kHybridPool ? kNoBlock : choose_victim();
  if (victim == kNoBlock || geometry_.pages_per_block - dead_pages(victim) > valid_limit)
    return false;
  const uint64_t before = counters_.gc_pages + counters_.erases;
  const int error = collect(victim, most);
  return error == 0 && counters_.gc_pages + counters_.erases != before;
}

// Moves up to `most` live pages of the victim, and retires it if that were all.
int HybridFtl::collect(BlockIndex victim, uint64_t most) {
  const Ppn first = victim * geometry_.pages_per_block;
  const uint64_t start = counters_.gc_pages;
  for (uint32_t word = 0; word < layout_.dead_words(); ++word) {
    const uint32_t places = std::min(64U, geometry_.pages_per_block - word * 64);
    uint64_t left = ~load(layout_.dead(victim, word)) & (~uint64_t{0} >> (64 - places));
    for (; left != 0; left &= left - 1) {
      if (counters_.gc_pages - start == most) return 0;
      const auto place = static_cast<uint32_t>(std::countr_zero(left));
      if (const int error = move(first + word * 64 + place); error != 0) return error;
    }
  }
  return retire(victim);
}

// Moves a live page. A page whose dead bit is late is left behind.
int HybridFtl::move(Ppn from) {
  const std::optional<Spare> found = nand_.spare(from);
  if (!found) return 0;
  const Lpn page = found->page == kUnknownPage ? owner_of(from) : found->page;
  if (page >= geometry_.user_pages || location(page) != from) return 0;
  if (full(open_[kCopies]))
    if (const int error = open_block(kCopies); error != 0) return error;
  const Ppn at = next_page(open_[kCopies]);
  const Spare spare{.page = page, .replaced = from, .padding = false};
  if (const int error = nand_.copy(from, at, spare); error != 0) return error;
  ++open_[kCopies].written;
  ++counters_.gc_pages;
  point(page, at);
  bury(from);
  return 0;
}

int HybridFtl::retire(BlockIndex victim) {
  fence();
  if (const int error = nand_.erase(victim); error != 0) return error;
  ++counters_.erases;
  store(layout_.erases(victim), load(layout_.erases(victim)) + 1);
  for (uint32_t slot = 0; slot < kHybridPool; ++slot) {
    if (load(HybridLayout::pool(slot)) != 0) continue;
    store(HybridLayout::pool(slot), uint64_t{victim} + 1);
    fence();
    return 0;
  }
  SFS_ASSERT(false);
}

// Greedy: the closed block with the most dead pages; kNoBlock: none has one, or no slot is free.
BlockIndex HybridFtl::choose_victim() const {
  BlockIndex best = kNoBlock;
  uint32_t most = 0;
  const auto used = static_cast<BlockIndex>(load(HybridLayout::never_used()));
  for (BlockIndex block = 0; block < used; ++block) {
    const uint32_t dead = dead_pages(block);
    if (dead <= most || in_use(block)) continue;
    best = block;
    most = dead;
  }
  return best;
}

uint32_t HybridFtl::dead_pages(BlockIndex block) const {
  uint32_t dead = 0;
  for (uint32_t word = 0; word < layout_.dead_words(); ++word)
    dead += static_cast<uint32_t>(std::popcount(load(layout_.dead(block, word))));
  return dead;
}

bool HybridFtl::in_use(BlockIndex block) const {
  return std::ranges::find(open_, block, &Frontier::block) != open_.end() || in_pool(block);
}

bool HybridFtl::in_pool(BlockIndex block) const {
  for (uint32_t slot = 0; slot < kHybridPool; ++slot)
    if (load(HybridLayout::pool(slot)) == uint64_t{block} + 1) return true;
  return false;
}

uint32_t HybridFtl::pooled() const {
  uint32_t blocks = 0;
  for (uint32_t slot = 0; slot < kHybridPool; ++slot)
    blocks += load(HybridLayout::pool(slot)) != 0 ? 1U : 0U;
  return blocks;
}

uint32_t HybridFtl::free_blocks() const {
  return static_cast<uint32_t>(geometry_.blocks - load(HybridLayout::never_used())) + pooled();
}

uint64_t HybridFtl::live_pages() const {
  uint64_t live = 0;
  for (uint64_t at = layout_.map(0); at < layout_.bytes(); at += kWordSize) {
    const uint64_t two = region_.load(at);
    live += (two & UINT32_MAX) != 0 ? 1U : 0U;
    live += two >> 32 != 0 ? 1U : 0U;
  }
  return live;
}

uint64_t HybridFtl::load(uint64_t offset) const {
  words_read_.store(words_read() + 1, std::memory_order_relaxed);
  return region_.load(offset);
}

void HybridFtl::store(uint64_t offset, uint64_t value) {
  region_.store_word(offset, value);
  flushed_ += region_.flush(offset, kWordSize);
}

void HybridFtl::fence() {
  region_.fence(std::move(flushed_));
}

}  // namespace streamfs::ssd
