// Makes a second copy of META from a current one. The copy gets its superblocks last.
// After a crash: until then the copy is marked as unfinished.
#include "fuse-fs/meta/make_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/flushed.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kPiece = 1024 * 1024;

Result<void> mark_unfinished(pmem::Region& region) {
  pmem::Flushed flushed;
  for (const uint64_t offset : kSuperOffset) {
    region.store_word(offset, wire::kUnfinishedMagic);
    flushed += region.flush(offset, kWordSize);
  }
  region.fence(std::move(flushed));
  return region.sync();
}

// Clears the superblocks after their marks. Otherwise a crash in the stores of the new superblocks
// could leave the old ones.
pmem::Flushed clear_superblocks(pmem::Region& region) {
  constexpr uint64_t kRest = round_up(sizeof(Superblock), kWordSize) - kWordSize;
  pmem::Flushed flushed;
  for (const uint64_t offset : kSuperOffset) {
    region.store_zeroes(offset + kWordSize, kRest);
    flushed += region.flush(offset + kWordSize, kRest);
  }
  return flushed;
}

pmem::Flushed copy_words(const pmem::Region& from, pmem::Region& region, uint64_t begin,
                         uint64_t end) {
  std::vector<uint64_t> words(kPiece / kWordSize);
  for (uint64_t at = begin; at < end; at += kPiece) {
    const uint64_t length = std::min(kPiece, end - at);
    std::memcpy(words.data(), from.at(at), length);
    region.store(at, std::span(words).first(length / kWordSize));
  }
  return region.flush(begin, end - begin);
}

}  // namespace

bool is_unfinished_copy(const pmem::Region& region) {
  return std::ranges::any_of(kSuperOffset, [&](uint64_t offset) {
    return offset + kWordSize <= region.size() && region.load(offset) == wire::kUnfinishedMagic;
  });
}

Result<void> make_copy(const pmem::Region& from, pmem::Region& region, Superblock super) {
  SFS_TRY(mark_unfinished(region));
  pmem::Flushed flushed = clear_superblocks(region);
  flushed += copy_words(from, region, kUnitSize, kSuperOffset[1]);
  flushed += copy_words(from, region, kSuperOffset[1] + kUnitSize, super.meta_size);
  region.fence(std::move(flushed));
  SFS_TRY(region.sync());
  --super.generation;  // as it is in the original
  SFS_TRY(store_superblock(region, super));
  return region.sync();
}

}  // namespace streamfs::meta
