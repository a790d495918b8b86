#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/types.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/record.h"

namespace streamfs::meta {

void Transaction::patch(uint64_t offset, uint64_t value) {
  SFS_ASSERT(offset % kWordSize == 0 && offset / kCellSize <= UINT32_MAX);
  const auto cell = static_cast<uint32_t>(offset / kCellSize);
  const uint64_t word = offset % kCellSize / kWordSize;
  const auto found = std::ranges::find(patches_, cell, &Patch::cell);
  Patch& patch = found == patches_.end() ? patches_.emplace_back(cell) : *found;
  patch.mask |= 1U << word;
  patch.values[word] = value;
}

void Transaction::patch_words(uint64_t offset, std::span<const uint64_t> values) {
  for (const uint64_t value : values) {
    patch(offset, value);
    offset += kWordSize;
  }
}

void Transaction::mask(uint64_t offset, uint64_t bits, uint64_t value) {
  masks_.push_back({offset, bits, value & bits});
}

void Transaction::run(BlockNo first, uint64_t count, RunKind kind) {
  for (uint64_t at = first.value; count > 0;) {
    const uint64_t here = std::min(count, kMaxRunBlocks);
    runs_.push_back(pack_run(at, here, kind));
    at += here;
    count -= here;
  }
}

void Transaction::body(uint64_t offset, std::span<const uint64_t> words) {
  SFS_ASSERT(words.size() < 0x10000);
  region_.store(offset, words);
  bodies_.push_back({offset, words.size()});
}

uint64_t Transaction::record_words() const {
  uint64_t words = kHeaderWords + masks_.size() * 3 + runs_.size() + bodies_.size();
  for (const Patch& patch : patches_) {
    words += 1 + static_cast<uint64_t>(std::popcount(patch.mask));
  }
  return words;
}

std::vector<uint64_t> Transaction::encode(std::span<const uint64_t> proofs) const {
  std::vector<uint64_t> out(kHeaderWords);
  out.reserve(record_words() + proofs.size() + kLineSize / kWordSize);
  for (const Patch& patch : patches_) {
    out.push_back(uint64_t{patch.cell} << 32U | patch.mask);
    for (uint32_t left = patch.mask; left != 0; left &= left - 1) {
      out.push_back(patch.values[static_cast<size_t>(std::countr_zero(left))]);
    }
  }
  for (const Mask& mask : masks_) out.insert(out.end(), {mask.offset, mask.bits, mask.value});
  out.insert(out.end(), runs_.begin(), runs_.end());
  for (const Body& body : bodies_) out.push_back(pack_body(body.offset, body.words));
  out.insert(out.end(), proofs.begin(), proofs.end());
  return out;
}

RecordHeader Transaction::header(size_t proofs) const {
  RecordHeader header{};
  header.patches = static_cast<uint8_t>(patches_.size());
  header.masks = static_cast<uint8_t>(masks_.size());
  header.bodies = static_cast<uint8_t>(bodies_.size());
  header.proofs = static_cast<uint8_t>(proofs);
  header.runs = static_cast<uint16_t>(runs_.size());
  return header;
}

}  // namespace streamfs::meta
