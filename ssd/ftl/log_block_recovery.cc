// LogBlockFtl: rebuilds the map from the spare areas.
//
// These blocks may be found for a logical block, T being the target of a full merge that was cut:
//   one    in place: the data block (or a log block that replaced one); else a log block
//   two    data and log; or T and, torn or not in place, what it replaces: T counts if it was
//          finished
//   three  data, log and T: the merge begins anew
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ssd/ftl/log_block.h"
#include "ssd/ftl/nand.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

struct LogBlockFtl::Found {
  BlockIndex block = kNoBlock;
  uint32_t logical = 0;
  uint32_t written = 0;  // pages, without a torn last one
  bool torn = false;     // the last page is torn
  bool in_place = false;
  uint64_t first_sequence = 0, last_sequence = 0;
};

// Trims are applied before torn blocks are rewritten: a copy is newer than every trim.
int LogBlockFtl::recover(std::span<const uint64_t> trims, bool read_only) {
  std::vector<Found> all;
  std::vector<uint32_t> torn;
  read_only_ = read_only;
  free_.clear();
  for (BlockIndex block = 0; block < geometry_.blocks; ++block)
    if (const int error = find(block, all); error != 0) return error;
  std::ranges::sort(
      all, {}, [](const Found& found) { return std::pair(found.logical, found.first_sequence); });
  for (auto first = all.begin(); first != all.end();) {
    const auto end = std::find_if(
        first, all.end(), [&](const Found& found) { return found.logical != first->logical; });
    std::vector<Found> of_one(first, end);
    if (const int error = settle(of_one, torn); error != 0) return error;
    first = end;
  }
  apply_trims(trims);
  for (const uint32_t logical : torn)
    if (const int error = read_only_ ? 0 : rewrite(logical); error != 0) return error;
  return 0;
}

// Reads a block's spare areas. If the first page has no entry, the block was being erased, or
// nothing in it was ever acknowledged.
int LogBlockFtl::find(BlockIndex block, std::vector<Found>& all) {
  const std::optional<Spare> first = nand_.spare(page_of(block, 0));
  if (!first) {
    free_.push_back(block);
    return 0;
  }
  if (first->page == kNoPage) return release(block);
  Found found{.block = block,
              .logical = first->page / geometry_.pages_per_block,
              .first_sequence = first->sequence};
  if (found.logical >= data_.size()) return EIO;
  if (const int error = find_end(found); error != 0) return error;
  sequence_ = std::max(sequence_, found.last_sequence + 1);
  all.push_back(found);
  return 0;
}

int LogBlockFtl::find_end(Found& found) {
  uint32_t some = 1, none = geometry_.pages_per_block + 1;  // bounds of the programmed pages
  std::optional<Spare> last = nand_.spare(page_of(found.block, none - 2));
  if (last) some = none - 1;
  while (none - some > 1) {
    const uint32_t middle = some + (none - some) / 2;
    (nand_.spare(page_of(found.block, middle - 1)) ? some : none) = middle;
  }
  last = nand_.spare(page_of(found.block, some - 1));
  found.written = some;
  if (last && last->page == kNoPage) {
    found.torn = true;
    last = nand_.spare(page_of(found.block, --found.written - 1));
  }
  if (!last || last->page >= kUnknownPage) return EIO;
  found.in_place = last->in_place;
  found.last_sequence = last->sequence;
  return 0;
}

// Settles the blocks found for a logical block. `of_one` has them, the oldest first. No page may be
// programmed behind a torn page that should lie in place, so `torn` gets a block to be rewritten.
int LogBlockFtl::settle(std::vector<Found>& of_one, std::vector<uint32_t>& torn) {
  if (of_one.size() > 3) return EIO;
  if (of_one.size() == 3) {
    if (!of_one.back().in_place) return EIO;
    if (const int error = release(of_one.back().block); error != 0) return error;
    of_one.pop_back();
  }
  if (of_one.size() == 2)
    if (const int error = settle_two(of_one); error != 0) return error;
  for (const Found& found : of_one)
    if (const int error = adopt(found); error != 0) return error;
  if (std::ranges::any_of(of_one, &Found::torn)) torn.push_back(of_one.front().logical);
  return 0;
}

// A spare area that is damaged says nothing of the page's age, and so leaves the page mapped.
void LogBlockFtl::apply_trims(std::span<const uint64_t> trims) {
  for (Lpn page = 0; page < trims.size(); ++page) {
    if (trims[page] == 0) continue;
    sequence_ = std::max(sequence_, trims[page] + 1);
    if (!live(page)) continue;
    const std::optional<Spare> spare = nand_.spare(location(page));
    if (!spare || spare->page >= kUnknownPage) continue;
    if (spare->padding || spare->sequence <= trims[page]) unmap(page);
  }
}

int LogBlockFtl::settle_two(std::vector<Found>& of_one) {
  const Found &older = of_one[0], &newer = of_one[1];
  if (!older.in_place && !newer.in_place) return EIO;
  if (older.in_place && !older.torn) return 0;  // data and log
  // If T was finished, it reaches past all pages of the other block.
  uint32_t end = older.in_place ? older.written : 0;
  for (uint32_t i = 0; !older.in_place && i < older.written; ++i) {
    const std::optional<Spare> spare = nand_.spare(page_of(older.block, i));
    if (spare && spare->page == kUnknownPage) return EIO;
    if (spare && spare->page != kNoPage)
      end = std::max(end, spare->page % geometry_.pages_per_block + 1);
  }
  const bool finished = newer.written >= end && !newer.torn;
  const size_t useless = finished ? 0 : 1;
  if (const int error = release(of_one[useless].block); error != 0) return error;
  of_one.erase(of_one.begin() + static_cast<ptrdiff_t>(useless));
  return 0;
}

int LogBlockFtl::adopt(const Found& found) {
  Data& home = data_[found.logical];
  if (!found.in_place || home.block != kNoBlock) return adopt_log(found);
  home.block = found.block;
  home.written = found.written;
  for (uint32_t place = 0; place < found.written; ++place)
    if (const Lpn page = page_of(found.logical, place); page < geometry_.user_pages)
      live_bits_.set(page);
  return 0;
}

int LogBlockFtl::adopt_log(const Found& found) {
  const auto unused = std::ranges::find(logs_, kNoBlock, &Log::block);
  if (unused == logs_.end()) return EIO;
  *unused = Log{.block = found.block,
                .owner = found.logical,
                .written = found.written + (found.torn ? 1U : 0U),
                .in_place = found.in_place && !found.torn,
                .last_use = found.last_sequence};
  unused->place.assign(geometry_.pages_per_block, kNowhere);
  for (uint32_t i = 0; i < found.written; ++i) {
    const std::optional<Spare> spare = nand_.spare(page_of(found.block, i));
    if (!spare || spare->page == kUnknownPage) return EIO;
    if (spare->page == kNoPage || spare->padding) continue;
    unused->place[spare->page % geometry_.pages_per_block] = static_cast<uint16_t>(i);
    live_bits_.set(spare->page);
  }
  data_[found.logical].log = static_cast<Slot>(unused - logs_.begin());
  return 0;
}

}  // namespace streamfs::ssd
