#include "fuse-fs/pair/meta_copies.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "base/result.h"
#include "base/wire/magic.h"
#include "fuse-fs/meta/make_copy.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/signature.h"
#include "pmem/mirror_region.h"
#include "pmem/region.h"

namespace streamfs::pair {
namespace {

// The content of one of the two places.
struct Side {
  std::string path;
  std::unique_ptr<pmem::Region> region;   // nothing: missing, or an empty file
  std::optional<meta::Superblock> super;  // nothing: no copy, or none that is whole
  std::string wrong;                      // without a superblock: what is the matter
  bool missing = false;
};

bool is_file(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path, none);
}

bool is_empty_file(const std::string& path) {
  std::error_code none;
  return is_file(path) && std::filesystem::file_size(path, none) == 0;
}

bool any_superblock_has(const pmem::Region& region, uint64_t field, const void* bytes,
                        size_t length) {
  return std::ranges::any_of(meta::kSuperOffset, [&](uint64_t offset) {
    return offset + field + length <= region.size() &&
           std::memcmp(region.at(offset + field), bytes, length) == 0;
  });
}

// Requires: the side has a superblock.
const meta::Superblock& super_of(const Side& side) {
  if (!side.super) assertion_failed("a copy with a superblock", __FILE__, __LINE__);
  return *side.super;
}

bool is_ours(const meta::Superblock& super, const CopiesWanted& wanted) {
  return std::memcmp(super.uuid, wanted.label.geometry.uuid, sizeof super.uuid) == 0;
}

Result<void> check_superblock(const Side& side, const CopiesWanted& wanted) {
  if (!is_ours(super_of(side), wanted)) {
    return Error{EMEDIUMTYPE,
                 side.path + " is META of another filesystem; give the two copies of this one's"};
  }
  if ((super_of(side).features & meta::kFeatureMirror) == 0 && !wanted.overwrite) {
    return Error{EMEDIUMTYPE, side.path +
                                  " is kept once: leave the mirror out, or make one with "
                                  "fsck.streamfs --resync"};
  }
  return {};
}

// Why there is no superblock; an error where nothing of this filesystem ever was.
Result<std::string> explain_no_superblock(const Side& side, const CopiesWanted& wanted,
                                          const Error& failure) {
  if (failure.code == EMEDIUMTYPE) return failure;  // of another version
  const auto& uuid = wanted.label.geometry.uuid;
  if (failure.code == EIO) {
    if (any_superblock_has(*side.region, offsetof(meta::Superblock, uuid), uuid, sizeof uuid))
      return std::string("its superblocks are damaged");
    return failure;
  }
  const bool ours =
      any_superblock_has(*side.region, offsetof(meta::Superblock, uuid), uuid, sizeof uuid);
  if (ours && side.region->size() < wanted.label.geometry.meta_size)
    return std::string("it is cut short");
  if (any_superblock_has(*side.region, 0, &wire::kSuperMagic, sizeof wire::kSuperMagic))
    return failure;  // of another version, or cut short
  if (meta::is_unfinished_copy(*side.region)) return std::string("it is an unfinished copy");
  SFS_ASSIGN(const auto holds, signature_of(*side.region));
  if (!holds) return std::string("it is empty");
  if (wanted.overwrite) return "it held " + *holds;
  return Error{EMEDIUMTYPE, fmt::format("{} holds {} and no copy of META; fsck.streamfs --resync "
                                        "makes it one",
                                        side.path, *holds)};
}

Result<Side> look(const std::string& path, const CopiesWanted& wanted) {
  Side side;
  side.path = path;
  pmem::OpenOptions open;
  open.read_only = wanted.read_only;
  open.wait_seconds = wanted.wait_seconds;
  open.declared_persistent = wanted.declared_persistent;
  auto region = pmem::open_region(path, open);
  if (!region.ok()) {
    const int code = region.error().code;
    side.missing = code == ENOENT || code == ENXIO || code == ENODEV || code == EIO;
    if (!side.missing && !is_empty_file(path)) return region.error();
    side.wrong = side.missing ? region.error().message() : "it is empty";
    return side;
  }
  side.region = std::move(region).value();
  const auto super = meta::load_superblock(*side.region, false);
  if (super.ok()) {
    side.super = *super;
    SFS_TRY(check_superblock(side, wanted));
    return side;
  }
  SFS_ASSIGN(side.wrong, explain_no_superblock(side, wanted, super.error()));
  return side;
}

bool is_current(const Side& side, const CopiesWanted& wanted) {
  return side.super && !is_older(super_of(side), wanted.attached);
}

// Larger is better: the copy that was used last, then the one that keeps more.
auto rank(const Side& side, const CopiesWanted& wanted) {
  const bool known =
      wanted.attached && super_of(side).mirror_token == wanted.attached->mirror_token;
  return std::tuple(super_of(side).attachments, known,
                    -static_cast<int>(side.region->meta_class()));
}

// Why the other cannot be used as it is; nothing: they are in step.
std::optional<std::string> out_of_step(const Side& best, const Side& other,
                                       const CopiesWanted& wanted) {
  if (!other.super) return other.wrong;
  const meta::Superblock &a = super_of(best), &b = super_of(other);
  if (b.attachments < a.attachments || !is_current(other, wanted)) return "it is older";
  if (a.mirror_token != b.mirror_token) return "it went on alone, and no further";
  const bool volatile_cache = best.region->meta_class() != pmem::MetaClass::kPersistent ||
                              other.region->meta_class() != pmem::MetaClass::kPersistent;
  if (machine_went_down(a) && volatile_cache) return "the machine went down while they were in use";
  return std::nullopt;
}

// Room for a copy of this size: a file is extended, and made if that was asked for.
Result<void> make_room(Side& side, uint64_t bytes, const CopiesWanted& wanted) {
  if (side.region && side.region->size() >= bytes) return {};
  if (side.region && !is_file(side.path)) {
    return Error{ENOSPC, fmt::format("{} has {} bytes, a copy of META needs {}", side.path,
                                     side.region->size(), bytes)};
  }
  side.region.reset();  // and its lock
  pmem::OpenOptions open;
  open.size = bytes;
  open.create = wanted.overwrite || wanted.make_missing;
  open.wait_seconds = wanted.wait_seconds;
  open.declared_persistent = wanted.declared_persistent;
  SFS_ASSIGN(side.region, pmem::open_region(side.path, open));
  return {};
}

Result<void> bring_into_step(const Side& best, Side& other, const meta::Superblock& super,
                             const std::string& why, const CopiesWanted& wanted) {
  SFS_TRY(make_room(other, super.meta_size, wanted));
  spdlog::warn("{} is made a copy of {} ({}): {} bytes", other.path, best.path, why,
               super.meta_size);
  SFS_TRY(meta::make_copy(*best.region, *other.region, super));
  spdlog::warn("{} is a whole copy of META again", other.path);
  return {};
}

// Both superblocks of a copy are this one, whatever a cut left of their stores.
Result<void> align_superblocks(Side& side, meta::Superblock super) {
  const auto there = meta::load_superblock(*side.region, true);
  if (there.ok() && there->generation == super.generation) return {};
  --super.generation;
  return meta::store_superblock(*side.region, super);
}

bool keeps_order(const Side& side) {
  return side.region->meta_class() == pmem::MetaClass::kPersistent;
}

MetaCopies alone(Side& side, const std::string& other, const std::string& why) {
  spdlog::warn("META is degraded: {} is used without {} ({})", side.path, other, why);
  const bool in_order = keeps_order(side);
  return {std::move(side.region), super_of(side), fmt::format("{}: {}", other, why), in_order};
}

}  // namespace

Result<std::optional<MetaCopies>> open_copies(const CopiesWanted& wanted) {
  std::error_code none;
  if (std::filesystem::equivalent(wanted.paths[0], wanted.paths[1], none)) {
    return Error{EMEDIUMTYPE, "META and its mirror are the same; give two places"};
  }
  SFS_ASSIGN(Side best, look(wanted.paths[0], wanted));
  SFS_ASSIGN(Side other, look(wanted.paths[1], wanted));
  const bool second = is_current(other, wanted);
  const bool first = is_current(best, wanted);
  if (!first && !second) return std::optional<MetaCopies>();
  if (second && (!first || rank(other, wanted) > rank(best, wanted))) std::swap(best, other);
  meta::Superblock super = super_of(best);
  const auto why = out_of_step(best, other, wanted);
  const bool may_make = wanted.overwrite || wanted.make_missing;
  if (why && (wanted.read_only || (other.missing && !may_make)))
    return std::optional(alone(best, other.path, *why));
  if (!why && super_of(other).generation > super.generation) super = super_of(other);
  if ((super.features & meta::kFeatureMirror) == 0) {
    super.features |= meta::kFeatureMirror;
    ++super.generation;
  }
  if (why) {
    const Result<void> made = bring_into_step(best, other, super, *why, wanted);
    const bool failing = !made.ok() && made.error().code == EIO && !wanted.overwrite;
    if (failing) return std::optional(alone(best, other.path, made.error().message()));
    SFS_TRY(made);
  }
  if (!wanted.read_only) {  // the original last: only now may the copy be missed
    SFS_TRY(align_superblocks(other, super));
    SFS_TRY(align_superblocks(best, super));
  }
  const bool in_order = keeps_order(best);
  if (other.region->meta_class() < best.region->meta_class()) std::swap(best, other);
  return std::optional(MetaCopies{
      std::make_unique<pmem::MirrorRegion>(std::move(best.region), std::move(other.region)),
      super,
      {},
      in_order});
}

}  // namespace streamfs::pair
