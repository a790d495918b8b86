// A second copy of META, made from one that is current. Its superblocks come last: until then it
// says of itself that it is unfinished, whatever the power does.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kPiece = 1024 * 1024;

Result<void> mark_unfinished(pmem::Region& to) {
  for (const uint64_t offset : kSuperOffset) {
    to.store_word(offset, kUnfinishedMagic);
    to.flush(offset, kWordSize);
  }
  to.fence();
  return to.sync();
}

void copy_words(const pmem::Region& from, pmem::Region& to, uint64_t begin, uint64_t end) {
  std::vector<uint64_t> words(kPiece / kWordSize);
  for (uint64_t at = begin; at < end; at += kPiece) {
    const uint64_t length = std::min(kPiece, end - at);
    std::memcpy(words.data(), from.at(at), length);
    to.store(at, std::span(words).first(length / kWordSize));
  }
  to.flush(begin, end - begin);
}

}  // namespace

bool is_unfinished_copy(const pmem::Region& region) {
  return std::ranges::any_of(
      kSuperOffset, [&](uint64_t offset) { return region.load(offset) == kUnfinishedMagic; });
}

Result<void> make_copy(const pmem::Region& from, pmem::Region& to, const Superblock& super) {
  SFS_TRY(mark_unfinished(to));
  copy_words(from, to, kUnitSize, kSuperOffset[1]);
  copy_words(from, to, kSuperOffset[1] + kUnitSize, super.meta_size);
  to.fence();
  SFS_TRY(to.sync());
  SFS_TRY(store_superblock(to, super));
  return to.sync();
}

}  // namespace streamfs::meta
