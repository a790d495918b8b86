#include "ssd/media/pram_blocks.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "base/types.h"

namespace streamfs::ssd {
namespace {

bool differ(ConstBytes a, ConstBytes b, size_t at, size_t bytes) {
  return std::memcmp(a.data() + at, b.data() + at, bytes) != 0;
}

}  // namespace

void PramBlocks::write(uint32_t block, ConstBytes now) {
  SFS_ASSERT(now.size() == block_bytes_);
  const uint64_t offset = uint64_t{block} * block_bytes_;
  count({region_.at(offset), block_bytes_}, now);
  std::vector<uint64_t> words(block_bytes_ / kWordSize);
  std::memcpy(words.data(), now.data(), now.size());
  const uint64_t before = region_.counters().words_programmed;
  region_.store(offset, words);
  region_.fence(region_.flush(offset, block_bytes_));
  ++counts_.blocks;
  counts_.words += words.size();
  counts_.programmed += selective_ ? region_.counters().words_programmed - before : words.size();
}

void PramBlocks::count(ConstBytes before, ConstBytes now) {
  for (size_t sector = 0; sector < now.size(); sector += kSectorBytes) {
    if (!differ(before, now, sector, kSectorBytes)) continue;
    ++counts_.sectors;
    for (size_t size = 0; size < kWordBytes.size(); ++size)
      for (size_t at = sector; at < sector + kSectorBytes; at += kWordBytes[size])
        counts_.changed[size] += differ(before, now, at, kWordBytes[size]) ? 1U : 0U;
  }
}

}  // namespace streamfs::ssd
