#include "fuse-fs/meta/superblock.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/meta/image.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

enum class CopyState { kForeign, kDamaged, kGood };

struct Copy {
  CopyState state = CopyState::kForeign;
  Superblock super{};
};

Copy read_copy(const pmem::Region& region, uint64_t offset) {
  Copy copy;
  if (offset + sizeof(Superblock) > region.size()) return copy;
  std::memcpy(&copy.super, region.at(offset), sizeof(Superblock));
  if (copy.super.magic != wire::kSuperMagic) return copy;
  const bool good = copy.super.checksum == superblock_checksum(copy.super);
  copy.state = good ? CopyState::kGood : CopyState::kDamaged;
  return copy;
}

void write_copy(pmem::Region& region, uint64_t offset, const Superblock& super) {
  std::array<uint64_t, round_up(sizeof(Superblock), kWordSize) / kWordSize> words{};
  std::memcpy(words.data(), &super, sizeof(super));
  region.store(offset, words);
  region.fence(region.flush(offset, sizeof(super)));
}

Error of_version(uint32_t version) {
  return Error{EMEDIUMTYPE, "META has format version " + std::to_string(version) +
                                ", this streamfs knows " + std::to_string(kOldestVersion) + " to " +
                                std::to_string(kIntentVersion)};
}

Result<Superblock> checked(const Superblock& super, const pmem::Region& region) {
  if (!known_version(super.version)) return of_version(super.version);
  if ((super.features & ~kKnownFeatures) != 0)
    return Error{EMEDIUMTYPE, "META has features that this streamfs does not know"};
  if (super.meta_size > region.size()) {
    return Error{EINVAL, "META is smaller than it was formatted (" + std::to_string(region.size()) +
                             " of " + std::to_string(super.meta_size) + " bytes)"};
  }
  return super;
}

}  // namespace

Result<Superblock> load_superblock(pmem::Region& region, bool repair) {
  const Copy a = read_copy(region, kSuperOffset[0]);
  const Copy b = read_copy(region, kSuperOffset[1]);
  const bool a_good = a.state == CopyState::kGood;
  const bool b_good = b.state == CopyState::kGood;
  if (!a_good && !b_good) {
    if (a.state == CopyState::kForeign && b.state == CopyState::kForeign) {
      return Error{EINVAL, "META holds no streamfs filesystem"};
    }
    // A superblock of another version may have another size: its checksum says nothing here.
    const bool alike = a.super.magic == b.super.magic && a.super.version == b.super.version;
    if (alike && !known_version(a.super.version)) return of_version(a.super.version);
    return Error{EIO, "both superblocks of META are damaged"};
  }
  const bool take_a = a_good && (!b_good || a.super.generation >= b.super.generation);
  SFS_ASSIGN(const Superblock super, checked(take_a ? a.super : b.super, region));
  const bool other_stale = !a_good || !b_good || a.super.generation != b.super.generation;
  if (repair && other_stale) write_copy(region, kSuperOffset[take_a ? 1 : 0], super);
  return super;
}

Result<void> store_superblock(pmem::Region& region, Superblock super) {
  ++super.generation;
  super.checksum = superblock_checksum(super);
  // The other copy is whole while one is stored.
  write_copy(region, kSuperOffset[1], super);
  write_copy(region, kSuperOffset[0], super);
  return {};
}

}  // namespace streamfs::meta
