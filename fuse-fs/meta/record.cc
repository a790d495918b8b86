#include "fuse-fs/meta/record.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/checksum.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kMaskWords = 3;
constexpr uint64_t kCellWords = kCellSize / kWordSize;

// Returns the words of `count` patches at the start of `words`, or nullopt if they do not fit.
std::optional<uint64_t> patch_words(std::span<const uint64_t> words, uint32_t count) {
  uint64_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (at >= words.size()) return std::nullopt;
    at += 1 + static_cast<uint64_t>(std::popcount(static_cast<uint32_t>(words[at])));
  }
  return at <= words.size() ? std::optional(at) : std::nullopt;
}

// Calls visit(word index, mask) for each 64-block word of a run.
template <typename Visitor>
void each_bitmap_word(const RunView& run, Visitor&& visit) {
  uint64_t block = run.first;
  uint64_t left = run.count;
  while (left > 0) {
    const uint64_t bit = block % 64;
    const uint64_t here = std::min(left, 64 - bit);
    const uint64_t ones = here == 64 ? ~uint64_t{0} : (uint64_t{1} << here) - 1;
    visit(block / 64, ones << bit);
    block += here;
    left -= here;
  }
}

void apply_run(pmem::Region& region, const Geometry& geometry, const RunView& run) {
  each_bitmap_word(run, [&](uint64_t word, uint64_t mask) {
    if (run.kind != RunKind::kTrimmed) {
      const uint64_t value = run.kind == RunKind::kAllocate ? mask : 0;
      region.store_masked(geometry.bitmap_word(RegionKind::kBlockBitmap, word), mask, value);
    }
    const uint64_t untrimmed = run.kind == RunKind::kFree ? mask : 0;
    region.store_masked(geometry.bitmap_word(RegionKind::kUntrimmed, word), mask, untrimmed);
  });
}

}  // namespace

uint32_t record_checksum(std::span<const uint64_t> words, uint32_t seed) {
  RecordHeader header{};
  std::memcpy(&header, words.data(), sizeof(header));
  header.checksum = 0;
  const uint32_t crc = crc32c(std::as_bytes(std::span(&header, 1)), seed);
  return crc32c(std::as_bytes(words.subspan(kHeaderWords)), crc);
}

std::optional<RecordView> RecordView::parse(std::span<const uint64_t> words) {
  if (words.size() < kHeaderWords) return std::nullopt;
  RecordView view;
  std::memcpy(&view.header_, words.data(), sizeof(RecordHeader));
  const uint64_t length = view.header_.sequence_words >> 48U;
  if (length < kHeaderWords || length > std::min<uint64_t>(words.size(), kMaxRecordWords)) {
    return std::nullopt;
  }
  view.words_ = words.first(length);
  auto rest = view.words_.subspan(kHeaderWords);
  const auto patches = patch_words(rest, view.header_.patches);
  if (!patches) return std::nullopt;
  const uint64_t tail = view.header_.masks * kMaskWords + view.header_.runs + view.header_.bodies +
                        view.header_.proofs;
  if (*patches + tail != rest.size()) return std::nullopt;
  const auto take = [&rest](uint64_t count) {
    const auto taken = rest.first(count);
    rest = rest.subspan(count);
    return taken;
  };
  view.patches_ = take(*patches);
  view.masks_ = take(view.header_.masks * kMaskWords);
  view.runs_ = take(view.header_.runs);
  view.bodies_ = take(view.header_.bodies);
  view.proofs_ = take(view.header_.proofs);
  return view;
}

bool RecordView::checksum_ok(uint32_t seed) const {
  return record_checksum(words_, seed) == header_.checksum;
}

std::optional<uint32_t> RecordView::body_checksum(const pmem::Region& region,
                                                  const Geometry& geometry) const {
  uint32_t crc = 0;
  for (const uint64_t packed : bodies_) {
    const BodyView body = unpack_body(packed);
    if (!geometry.journalable(body.offset, body.words * kWordSize)) return std::nullopt;
    crc = crc32c({region.at(body.offset), body.words * kWordSize}, crc);
  }
  return crc;
}

template <typename Visitor>
void RecordView::each_patch(Visitor&& visitor) const {
  for (uint64_t at = 0; at < patches_.size();) {
    const auto mask = static_cast<uint32_t>(patches_[at]);
    const auto count = static_cast<uint64_t>(std::popcount(mask));
    visitor((patches_[at] >> 32U) * kCellSize, mask, patches_.subspan(at + 1, count));
    at += 1 + count;
  }
}

bool RecordView::in_bounds(const Geometry& geometry) const {
  bool ok = true;
  each_patch(
      [&](uint64_t cell, uint32_t, auto) { ok = ok && geometry.journalable(cell, kCellSize); });
  for (uint64_t at = 0; at < masks_.size(); at += kMaskWords) {
    ok = ok && masks_[at] % kWordSize == 0 && geometry.journalable(masks_[at], kWordSize);
  }
  for (const uint64_t packed : runs_) {
    const RunView run = unpack_run(packed);
    ok = ok && run.count > 0 && geometry.valid_blocks(run.first, run.count) &&
         run.kind <= RunKind::kTrimmed;
  }
  for (const uint64_t packed : bodies_) {
    const BodyView body = unpack_body(packed);
    ok = ok && geometry.journalable(body.offset, body.words * kWordSize);
  }
  return ok;
}

void RecordView::apply(pmem::Region& region, const Geometry& geometry) const {
  each_patch([&](uint64_t cell, uint32_t mask, std::span<const uint64_t> values) {
    for (uint64_t left = mask; left != 0;) {  // neighbours together
      const auto first = static_cast<uint32_t>(std::countr_zero(left));
      const auto count = static_cast<uint32_t>(std::countr_one(left >> first));
      region.store(cell + first * kWordSize, values.first(count));
      values = values.subspan(count);
      left &= ~(((uint64_t{1} << count) - 1) << first);
    }
  });
  for (uint64_t at = 0; at < masks_.size(); at += kMaskWords) {
    region.store_masked(masks_[at], masks_[at + 1], masks_[at + 2]);
  }
  for (const uint64_t packed : runs_) apply_run(region, geometry, unpack_run(packed));
}

void RecordView::home_lines(const Geometry& geometry, std::vector<uint64_t>& lines) const {
  const auto add = [&lines](uint64_t offset) { lines.push_back(round_down(offset, kLineSize)); };
  each_patch([&](uint64_t cell, uint32_t mask, auto) {
    for (uint64_t line = 0; line < kCellWords / 8; ++line) {
      if ((mask >> (line * 8) & 0xffU) != 0) add(cell + line * kLineSize);
    }
  });
  for (uint64_t at = 0; at < masks_.size(); at += kMaskWords) add(masks_[at]);
  for (const uint64_t packed : runs_) {
    const RunView run = unpack_run(packed);
    each_bitmap_word(run, [&](uint64_t word, uint64_t) {
      if (run.kind != RunKind::kTrimmed) add(geometry.bitmap_word(RegionKind::kBlockBitmap, word));
      add(geometry.bitmap_word(RegionKind::kUntrimmed, word));
    });
  }
}

std::vector<uint64_t> RecordView::units_taken(const Geometry& geometry) const {
  std::vector<uint64_t> units;
  for (uint64_t at = 0; at < masks_.size(); at += kMaskWords) {
    const auto first = geometry.region_byte(RegionKind::kHeapMap, masks_[at]);
    if (!first) continue;
    for (uint64_t byte = 0; byte < kWordSize; ++byte) {
      const auto kind = static_cast<UnitKind>(masks_[at + 2] >> byte * 8 & 0xff);
      const bool is_set = (masks_[at + 1] >> byte * 8 & 0xff) != 0;
      const bool is_taken = is_set && kind != UnitKind::kFree && kind != UnitKind::kDirty;
      if (is_taken && *first + byte < geometry.heap_units()) units.push_back(*first + byte);
    }
  }
  return units;
}

void RecordView::add_bodies(HomeBlocks& blocks) const {
  for (const uint64_t packed : bodies_) {
    const BodyView body = unpack_body(packed);
    blocks.add(body.offset, body.words * kWordSize);
  }
}

}  // namespace streamfs::meta
