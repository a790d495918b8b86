// Reads META for check(), and collects problems and the repairs of the simple ones.
//
//   scan      every inode unit, in chunks that threads share: images, chains, extents, entries
//   tree      inode units that the heap map hides, orphans, unreachable inodes, parents, links
//   space     heap units, blocks, vStreams
//
// A chain's claim on a unit outweighs a heap map that gives the unit to inodes. A walk finds such a
// chain only after it has reported problems of those inodes. The walk is therefore repeated: each
// walk is told the units that the last one found in chains, and does not read them as inodes. The
// findings count once a walk finds exactly the units that it was told.
//
// Facts about inodes lie in arrays by slot, facts about units and blocks in arrays by number. A
// path is built only for a problem's text. A unit's header names its one owner, so two threads
// never claim the same unit; counts of names and owned blocks are atomic. Findings are kept by
// chunk, so the order of problems does not depend on the threads.
//
// Thread safety: none; run() starts and joins its own threads. META is only read.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/directory.h"
#include "fuse-fs/meta/extent_map.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/inode.h"

namespace streamfs::meta {

inline constexpr uint64_t kUnitsPerChunk = 256;  // heap units in one piece of a thread's work

// The right values of fields of an inode's image.
struct ImageFix {
  std::optional<uint32_t> nlink;
  std::optional<uint64_t> size, blocks, parent;

  void add(const ImageFix& more) {
    if (more.nlink) nlink = more.nlink;
    if (more.size) size = more.size;
    if (more.blocks) blocks = more.blocks;
    if (more.parent) parent = more.parent;
  }
};

// The changes that a repair makes.
struct Repairs {
  std::map<InodeId, ImageFix> images;
  std::map<uint64_t, UnitKind> units;  // the right entry of the heap map
  struct Run {
    BlockNo first;
    uint64_t count;
    RunKind kind;
  };
  std::vector<Run> runs;
  struct Lost {
    InodeId id;
    uint64_t entry;  // META offset of a name to be removed, 0 = none
  };
  std::vector<Lost> lost;              // to be named in /lost+found
  std::vector<uint64_t> orphan_slots;  // to be cleared
  std::vector<uint32_t> vstreams;      // slots to be cleared
  std::set<InodeId> dangling;          // free slots to which names lead; a repair must not use them
  bool superblocks = false;            // their count of inodes is wrong
};

// Facts about inodes, by slot. The slots of a unit are adjacent; units are in the order of
// add_unit().
struct InodeTable {
  enum Flag : uint8_t { kSound = 1, kDirectory = 2, kOrphan = 4, kReached = 8, kLost = 16 };

  explicit InodeTable(const Geometry& where) : geometry(where), first_slot(where.heap_units(), 0) {}
  void add_unit(uint64_t unit);
  std::optional<size_t> slot(InodeId id) const;  // nullopt: not in an inode unit
  InodeId id(size_t slot) const {
    return InodeId{units[slot / kInodesPerUnit] / kCellSize + slot % kInodesPerUnit};
  }
  size_t size() const { return flags.size(); }

  const Geometry& geometry;
  std::vector<uint32_t> first_slot;             // by heap unit: slot / 16 + 1; 0 = no inode unit
  std::vector<uint64_t> units;                  // META offsets
  std::vector<uint64_t> entry;                  // META offset of the first name, 0 = none
  std::vector<uint32_t> names, subdirectories;  // names found for it; directories named in it
  std::vector<uint8_t> flags;
};

// The findings of one chunk of the scan, or of one later step.
struct Findings {
  struct Said {
    std::string before;  // the report says `before`, the path of `about`, and `after`
    InodeId about;       // 0: no path
    std::string after;
    bool repairable;
    InodeId lost = {};  // as CheckReport::Problem
  };
  struct Stray {  // a name that leads out of the units known to hold inodes
    InodeId directory;
    uint64_t entry;
    InodeId target;
  };
  std::vector<Said> said;
  std::vector<InodeId> unsound;
  std::vector<Stray> strays;
  std::vector<uint64_t> not_empty;  // units that are marked free but hold something
  Repairs repairs;
  uint64_t inodes = 0, directories = 0, files = 0, others = 0, blocks = 0, units = 0;
  bool blind = false;            // some object may own more than was read: nothing is called lost
  bool blocks_conflict = false;  // some block has two owners
};

class CheckScan;

class CheckWalk {
 public:
  using Units = std::set<uint64_t>;  // numbers of heap units

  CheckWalk(const pmem::Region& region, const Geometry& geometry, const CheckOptions& options,
            Units chained);
  // Walks META once, and fills in `report`, `repairs` and found_chained(). Errors: ECANCELED.
  Result<void> run();
  // Returns whether the findings count, because the walk found the chains that it was told.
  bool counts() const { return found_chained_ == chained_; }
  const Units& found_chained() const { return found_chained_; }

  CheckReport report;
  Repairs repairs;
  bool superblocks_differ = false;

 private:
  friend class CheckScan;

  void say(const std::string& text, bool repairable = false) {
    say(text, InodeId{0}, {}, repairable);
  }
  void say(std::string before, InodeId about, std::string after, bool repairable = false);
  void blind(std::string before, InodeId about, std::string after);
  std::string path(InodeId id) const;
  std::string entry_path(uint64_t entry) const;  // below its directory's
  InodeId owner_of_entry(uint64_t entry) const;
  size_t known_slot(InodeId id) const;  // asserts that it lies in an inode unit
  uint64_t word0(InodeId id) const { return region_.load(inode_offset(id)); }

  // ---- Scan
  Result<void> scan();
  Result<void> for_chunks(int pass, uint64_t count,
                          const std::function<void(uint64_t, CheckScan&)>& work);
  void collect(std::vector<Findings>& chunks);
  void note_name(Findings& out, InodeId directory, uint64_t entry, size_t target);

  // ---- Tree
  void find_root();
  bool adopt_unit(uint64_t unit, InodeId because);
  std::optional<size_t> find(InodeId id);
  void follow_strays();
  void check_free_units();
  void say_dangling();
  void say_unsound();
  void check_owners();
  void check_orphans();
  void check_orphan(uint64_t word);
  void check_reached();
  void say_loop(const std::vector<size_t>& loop);
  Result<void> check_inodes();
  void check_inode(size_t slot, Findings& out);
  void check_directory(size_t slot, Findings& out) const;

  // ---- Space
  void find_chained();
  void check_units();
  void check_blocks();
  void report_blocks(BlockNo first, uint64_t count, int state);
  void check_vstreams();
  void check_counts();

  const pmem::Region& region_;
  const Geometry& geometry_;
  const CheckOptions& options_;
  InodeId root_;
  Units chained_, found_chained_;
  std::vector<uint8_t> kind_;     // by heap unit: as the heap map says, or as it should
  std::vector<uint8_t> claimed_;  // by heap unit: the UnitKind it is claimed as, 0 = unclaimed
  std::vector<uint64_t> owned_;   // a bit for each data block
  InodeTable inodes_;
  bool rooted_ = false;  // there is a root to name lost inodes in
  Findings found_;       // of all chunks, then of the steps that follow
  // By 4 KiB page of META: names that lead nowhere unless that page proves to hold inodes.
  std::multimap<uint64_t, Findings::Stray> dangling_;
};

// The part of the scan that one thread runs. Its own members are scratch space for the object being
// visited.
class CheckScan {
 public:
  explicit CheckScan(CheckWalk& all) : all_(all) {}
  void scan_unit(uint64_t unit, Findings& out);
  void scan_inodes(uint64_t unit, Findings& out);
  void claim_orphans(uint64_t head, std::vector<uint64_t>& units, Findings& out);
  // Visits the extents of a sound file again, in the order of their slots. Claims nothing.
  void each_extent(const InodeImage& image, const std::function<void(const Extent&)>& visit) const;

 private:
  struct Name {
    uint32_t hash;
    uint64_t entry;
  };
  void say(std::string after, bool repairable = false);
  void blind(std::string after);
  void visit_inode(InodeId id);
  void visit_directory(const InodeImage& image);
  void visit_entry(uint64_t unit, uint32_t index, const DirEntry& entry);
  void check_twice();
  void visit_file(const InodeImage& image);
  void visit_extent(const ExtentSlot& slot);
  uint64_t count_blocks();
  void own_blocks(const Extent& extent);
  void visit_blob(const InodeImage& image, uint64_t first, bool symlink);
  void check_xattrs(std::string_view bytes);
  void check_fields(const InodeImage& image);
  bool claim_chain(uint64_t first, UnitKind kind);
  bool claim_unit(uint64_t offset, UnitKind kind);

  CheckWalk& all_;
  Findings* out_ = nullptr;
  InodeId id_;            // of the inode being visited
  bool damaged_ = false;  // a part of that inode cannot be believed
  std::vector<uint64_t> chain_;
  std::vector<Extent> extents_;
  std::vector<Name> names_;
};

}  // namespace streamfs::meta
