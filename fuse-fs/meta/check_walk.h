// The reading half of check(): one walk over all of META that collects problems, and what would
// repair the simple ones. Thread safety: none. Changes nothing.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fuse-fs/meta/blob/acl.h"
#include "fuse-fs/meta/blob/xattr.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/extent_map.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/inode.h"

namespace streamfs::meta {

// What a repair would do; indices of the problems it answers go with it.
struct Repairs {
  std::map<InodeId, uint32_t> links;   // the right link count
  std::map<uint64_t, UnitKind> units;  // the right entry of the heap map
  struct Run {
    BlockNo first;
    uint64_t count;
    RunKind kind;
  };
  std::vector<Run> runs;
  std::vector<InodeId> lost;             // to be named in /lost+found
  std::vector<uint64_t> orphan_slots;    // to be cleared
  std::unordered_set<InodeId> dangling;  // free slots that names lead to: a repair takes none
  bool superblocks = false;

  bool empty() const {
    return links.empty() && units.empty() && runs.empty() && lost.empty() && orphan_slots.empty() &&
           !superblocks;
  }
};

class CheckWalk {
 public:
  CheckWalk(const pmem::Region& region, const Geometry& geometry);
  void run();

  CheckReport report;
  Repairs repairs;

 private:
  struct Seen {
    uint32_t names = 0;
    uint32_t subdirectories = 0;
    uint32_t nlink = 0;
    bool directory = false;
    bool orphan = false;
  };
  struct Visit {
    InodeId id;
    InodeId parent;  // directories: what `parent` must be; 0 = whatever it is
    std::string path;
  };

  void problem(const std::string& text, bool repairable = false);
  // What this object owns is not known: nothing may be called lost and freed any more.
  void blinding_problem(const std::string& text);
  // As the heap map says, or as it should.
  UnitKind kind(uint64_t unit) const {
    const auto repaired = repairs.units.find(unit);
    return repaired == repairs.units.end() ? read_unit_kind(region_, geometry_, unit)
                                           : repaired->second;
  }
  bool exists(InodeId id);

  void walk_tree(Visit from);
  void visit_inode(const Visit& visit);
  void visit_directory(const Visit& visit, const InodeImage& image);
  void visit_entry(const Visit& visit, uint64_t unit, uint32_t index, const DirEntry& entry);
  void visit_file(const std::string& path, const InodeImage& image);
  void visit_extent(const std::string& path, const ExtentSlot& slot,
                    std::map<uint64_t, uint64_t>& ranges);
  void visit_blob(const std::string& path, const InodeImage& image, uint64_t first, bool symlink);
  void check_xattrs(const std::string& path, std::string_view bytes);
  std::vector<uint64_t> claim_chain(const std::string& path, uint64_t first, UnitKind kind,
                                    InodeId owner);
  bool claim_unit(const std::string& path, uint64_t offset, UnitKind kind, InodeId owner);
  void own_blocks(const std::string& path, const Extent& extent);

  void check_orphans();
  std::vector<InodeId> unseen() const;
  void find_lost(std::vector<InodeId> lost);
  void check_links();
  void check_units();
  void check_blocks();
  void report_blocks(BlockNo first, uint64_t count, int state);

  const pmem::Region& region_;
  const Geometry& geometry_;
  std::unordered_map<InodeId, Seen> seen_;
  std::vector<Visit> stack_;
  std::vector<uint8_t> claimed_;  // by heap unit: the UnitKind of its one owner, 0 = nobody's
  std::vector<bool> owned_;       // by data block
  bool blind_ = false;
  bool rooted_ = false;                    // there is a root to name lost inodes in
  std::unordered_set<std::string> names_;  // of the directory being visited
};

}  // namespace streamfs::meta
