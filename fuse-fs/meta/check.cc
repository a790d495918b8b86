// check(): the walk, then the repairs, which are journal records on an unmounted filesystem.
#include "fuse-fs/meta/check.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/meta/check_walk.h"
#include "fuse-fs/meta/copies.h"
#include "fuse-fs/meta/inode_slots.h"
#include "fuse-fs/meta/record.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr std::string_view kLostName = "lost+found";

class Repairer {
 public:
  Repairer(pmem::Region& region, const Geometry& geometry)
      : region_(region), geometry_(geometry), journal_(region, geometry_) {}

  Result<void> run(const Repairs& repairs);
  uint64_t inodes_made() const { return made_; }
  // Inodes that got no name in /lost+found, each with the reason, such as a damaged root directory.
  using Unnamed = std::map<InodeId, std::string>;
  const Unnamed& unnamed() const { return unnamed_; }

 private:
  Result<void> set_units(const Repairs& repairs);
  Result<void> set_runs(const Repairs& repairs);
  Result<void> set_images(const Repairs& repairs);
  Result<void> clear_words(const Repairs& repairs);
  Result<InodeId> lost_and_found(Heap& heap, const Repairs& repairs);
  Result<InodeId> make_lost_and_found(Heap& heap, const Repairs& repairs, Directory& root_names,
                                      const InodeImage& root);
  Result<void> name_lost(Heap& heap, const Repairs& repairs, const Repairs::Lost& lost);
  void put_forget(Transaction& tx, uint64_t entry);

  pmem::Region& region_;
  const Geometry& geometry_;
  Journal journal_;
  uint64_t made_ = 0;
  Unnamed unnamed_;
};

Result<void> Repairer::run(const Repairs& repairs) {
  SFS_TRY(set_units(repairs));
  Heap heap(Store{region_, geometry_, journal_});  // reads the repaired heap map
  heap.open_reserve();
  SFS_TRY(set_runs(repairs));
  SFS_TRY(set_images(repairs));
  SFS_TRY(clear_words(repairs));
  for (const Repairs::Lost& lost : repairs.lost) {
    const Result<void> named = name_lost(heap, repairs, lost);
    if (!named.ok()) unnamed_.emplace(lost.id, named.error().message());
  }
  journal_.checkpoint();
  return {};
}

Result<void> Repairer::set_units(const Repairs& repairs) {
  auto next = repairs.units.begin();
  while (next != repairs.units.end()) {
    Transaction tx(region_);  // a record takes a bounded number of changes
    for (int i = 0; i < 100 && next != repairs.units.end(); ++i, ++next) {
      put_unit_kind(tx, geometry_, next->first, next->second);
    }
    SFS_TRY(journal_.commit(tx));
  }
  return {};
}

Result<void> Repairer::set_runs(const Repairs& repairs) {
  auto next = repairs.runs.begin();
  while (next != repairs.runs.end()) {
    Transaction tx(region_);
    for (int i = 0; i < 100 && next != repairs.runs.end(); ++i, ++next) {
      tx.run(next->first, next->count, next->kind);
    }
    SFS_TRY(journal_.commit(tx));
  }
  return {};
}

Result<void> Repairer::set_images(const Repairs& repairs) {
  for (const auto& [id, fix] : repairs.images) {
    const InodeImage old = load_image(region_, id);
    if (image_problem(old, id) != nullptr) continue;  // a new checksum would hide the damage
    InodeImage next = old;
    next.nlink = fix.nlink.value_or(next.nlink);
    next.size = fix.size.value_or(next.size);
    next.parent = fix.parent.value_or(next.parent);
    if (fix.blocks) set_block_count(next, *fix.blocks);
    Transaction tx(region_);
    put_image(tx, id, old, next);
    SFS_TRY(journal_.commit(tx));
  }
  return {};
}

Result<void> Repairer::clear_words(const Repairs& repairs) {
  std::vector<uint64_t> words = repairs.orphan_slots;
  for (const uint32_t slot : repairs.vstreams) {
    words.push_back(
        geometry_.region_offset(RegionKind::kVStreams, uint64_t{slot} * sizeof(VStreamSlot)));
  }
  for (const uint64_t word : words) {
    Transaction tx(region_);
    tx.patch(word, 0);
    SFS_TRY(journal_.commit(tx));
  }
  return {};
}

Result<InodeId> Repairer::lost_and_found(Heap& heap, const Repairs& repairs) {
  const InodeId root{geometry_.super().root_inode};
  SFS_ASSIGN(const InodeImage image, read_inode(heap, root));
  SFS_ASSIGN(const auto names, Directory::load(heap, root, image));
  SFS_ASSIGN(const auto found, names->find(kLostName));
  if (!found) return make_lost_and_found(heap, repairs, *names, image);
  if (!S_ISDIR(found->type)) return Error{ENOTDIR, "/lost+found is not a directory"};
  return found->id;
}

// Takes a slot that no dangling name leads to.
Result<InodeSlots::Claim> take_slot(InodeSlots& slots, const Repairs& repairs) {
  for (std::vector<InodeSlots::Claim> passed_over;;) {
    SFS_ASSIGN(InodeSlots::Claim slot, slots.take());
    if (!repairs.dangling.contains(slot.id())) return slot;
    passed_over.push_back(std::move(slot));
  }
}

Result<InodeId> Repairer::make_lost_and_found(Heap& heap, const Repairs& repairs,
                                              Directory& root_names, const InodeImage& root) {
  InodeSlots slots(heap, 0);
  SFS_ASSIGN(InodeSlots::Claim slot, take_slot(slots, repairs));
  region_.equalise(0, inode_offset(slot.id()), kCellSize);
  auto words = std::bit_cast<InodeWords>(load_image(region_, slot.id()));
  std::fill_n(words.begin(), kInodeBodyWords, 0);
  auto made = std::bit_cast<InodeImage>(words);
  made.mode = S_IFDIR | 0700;
  made.nlink = 2;
  made.mtime = made.ctime = made.atime = made.btime = root.mtime;
  made.generation = slot.generation();
  made.self = slot.id().value;
  made.parent = root.self;
  Transaction tx(region_);
  slot.put(tx);
  made.checksum = inode_checksum(made);
  words = std::bit_cast<InodeWords>(made);
  tx.patch_words(inode_offset(slot.id()), std::span(words).first(kInodeBodyWords));
  InodeImage next = root;
  ++next.nlink;
  SFS_ASSIGN(auto insertion, root_names.put_insert(tx, kLostName, slot.id(), S_IFDIR, next));
  put_image(tx, InodeId{root.self}, root, next);
  SFS_TRY(journal_.commit(tx));
  slot.keep();
  root_names.inserted(std::move(insertion));
  ++made_;
  return slot.id();
}

// Removes a name that closes a loop of directories.
void Repairer::put_forget(Transaction& tx, uint64_t entry) {
  const uint64_t unit = round_down(entry, kUnitSize);
  const auto index = static_cast<uint32_t>((entry - unit) / sizeof(DirSlot) - 1);
  const auto decoded = decode_entry(region_, unit, index);
  for (uint32_t i = 0; i < (decoded ? decoded->slots : 1); ++i)
    tx.patch(slot_offset(unit, index + i), 0);
}

Result<void> Repairer::name_lost(Heap& heap, const Repairs& repairs, const Repairs::Lost& lost) {
  const InodeId id = lost.id;
  SFS_ASSIGN(const InodeId folder, lost_and_found(heap, repairs));
  SFS_ASSIGN(const InodeImage folder_image, read_inode(heap, folder));
  SFS_ASSIGN(const auto names, Directory::load(heap, folder, folder_image));
  const InodeImage old = load_image(region_, id);
  InodeImage next = old, folder_next = folder_image;
  if (is_directory(old)) {
    next.parent = folder.value;
    ++folder_next.nlink;
  }
  Transaction tx(region_);
  const std::string name = "#" + std::to_string(id.value);
  SFS_ASSIGN(auto insertion, names->put_insert(tx, name, id, old.mode & S_IFMT, folder_next));
  if (lost.entry != 0) put_forget(tx, lost.entry);
  put_image(tx, id, old, next);
  put_image(tx, folder, folder_image, folder_next);
  SFS_TRY(journal_.commit(tx));
  names->inserted(std::move(insertion));
  return {};
}

// Reports a superblock that is damaged, or older than the other (after a crash between the stores
// of the two).
void check_superblocks(const pmem::Region& region, const Superblock& super, CheckWalk& walk) {
  for (const uint64_t offset : kSuperOffset) {
    Superblock copy{};
    std::memcpy(&copy, region.at(offset), sizeof(copy));
    const bool whole =
        copy.magic == wire::kSuperMagic && copy.checksum == superblock_checksum(copy);
    if (whole && copy.generation == super.generation) continue;
    walk.report.problems.push_back({"the superblock at offset " + std::to_string(offset) +
                                        (whole ? " is older than the other" : " is damaged"),
                                    true});
    walk.superblocks_differ = true;
  }
}

// Reports where the copies of a META that is kept twice differ in regions without checksums.
void check_copies(const pmem::Region& region, const Geometry& geometry, CheckReport& report) {
  for (const auto& [kind, name] : kMaps) {
    const uint64_t words = differing_words(region, geometry, kind);
    if (words == 0) continue;
    report.problems.push_back(
        {"the copies of META differ in " + std::to_string(words) + " words of " + std::string(name),
         true});
  }
}

constexpr const char* kLost = " pages of META cannot be read: nothing is repaired";
constexpr const char* kImpossible = "the journal's watermark is impossible: nothing is repaired";
constexpr const char* kContradiction =
    "chains and inodes lay claim to each other's heap units: nothing is repaired";
constexpr int kWalksMost = 4;  // two are enough, unless inodes of one such unit own another

// Returns the first walk that counts, or the last one if all contradict themselves.
// Errors: ECANCELED.
Result<std::unique_ptr<CheckWalk>> walk(const pmem::Region& region, const Geometry& geometry,
                                        const CheckOptions& options) {
  CheckWalk::Units chained;
  for (int walks = 1;; ++walks) {
    auto walk = std::make_unique<CheckWalk>(region, geometry, options, chained);
    SFS_TRY(walk->run());
    if (walk->counts() || walks == kWalksMost) return walk;
    chained = walk->found_chained();
  }
}

// Makes the next mount begin the metadata log anew, because the log gets no record of repairs.
Result<Superblock> leave_the_log(pmem::Region& region, Superblock super) {
  if (super.log_end == 0) return super;
  super.log_end = 0;
  SFS_TRY(store_superblock(region, super));
  ++super.generation;
  SFS_TRY(region.sync());
  return super;
}

void say_unnamed(const Repairer::Unnamed& unnamed, CheckReport& report) {
  for (CheckReport::Problem& problem : report.problems) {
    if (problem.lost.value != 0 && unnamed.contains(problem.lost)) problem.repaired = false;
  }
  for (const auto& [id, why] : unnamed) {
    std::string text = "inode " + std::to_string(id.value) + " cannot be named in /lost+found: ";
    report.problems.push_back({text += why, false});
  }
}

}  // namespace

Result<CheckReport> check(pmem::Region& region, const Superblock& super,
                          const CheckOptions& options) {
  SFS_ASSIGN(const Geometry geometry, Geometry::from(super));
  mend_objects(region, geometry);
  SFS_ASSIGN(const auto walked, walk(region, geometry, options));
  CheckWalk& walk = *walked;
  for (size_t copy = 0; copy < region.copies(); ++copy)
    check_superblocks(region.copy(copy), super, walk);
  check_copies(region, geometry, walk.report);
  if (!walk.counts()) walk.report.problems.push_back({kContradiction, false});
  // An object that seems to be missing may be on a page that cannot be read.
  const uint64_t lost = region.lost();
  if (lost > 0) walk.report.problems.push_back({std::to_string(lost) + kLost, false});
  // The records of a repair would get sequences that no record has room for.
  const bool impossible = region.load(kWatermarkOffset) > kMaxSequence;
  if (impossible) walk.report.problems.push_back({kImpossible, false});
  if (!options.repair || lost > 0 || impossible || !walk.counts()) {
    for (CheckReport::Problem& problem : walk.report.problems) problem.repaired = false;
    return walk.report;
  }
  if (walk.report.sound()) return walk.report;
  SFS_ASSIGN(const Superblock current, leave_the_log(region, super));
  Repairer repairer(region, geometry);
  SFS_TRY(repairer.run(walk.repairs));
  say_unnamed(repairer.unnamed(), walk.report);
  walk.report.inodes += repairer.inodes_made();
  if (walk.superblocks_differ || walk.repairs.superblocks ||
      (super.clean != 0 && repairer.inodes_made() != 0)) {
    Superblock right = current;
    right.clean_used_inodes = walk.report.inodes;
    SFS_TRY(store_superblock(region, right));
  }
  equalise_copies(region, geometry);
  return walk.report;
}

}  // namespace streamfs::meta
