// Walks everything in META from the root and says what does not hold. fsck.streamfs and the tests
// use it on a filesystem that nobody has mounted, after recover_journal().
//
// What must hold:
//   - both superblocks are whole and the same;
//   - every name leads to an inode that believes in itself; a directory has one name and knows its
//     parent; link counts are the numbers of names; no name twice in a directory;
//   - an inode without a name is on the orphan list, and nothing else is;
//   - every heap unit of a chain belongs to one object, and the heap map says so; no unit is lost;
//   - every block belongs to one extent and is marked allocated; no other block is; none lies below
//     the first data block; none is both allocated and untrimmed.
//
// Repair does the simple things, through the journal, and never takes a name or a byte away: lost
// blocks and units are freed, bits and link counts set right, inodes without a name go to
// /lost+found. A second check finds nothing of these.
//
// Thread safety: none; the region is nobody else's. What a crash leaves: each repair whole or not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::meta {

struct CheckOptions {
  bool repair = false;
};

struct CheckReport {
  struct Problem {
    std::string text;  // a sentence that names the object
    bool repaired = false;
  };
  std::vector<Problem> problems;
  uint64_t directories = 0, files = 0, others = 0, orphans = 0;
  uint64_t blocks_in_use = 0, units_in_use = 0;

  bool sound() const { return problems.empty(); }
  bool all_repaired() const;
};

// Errors: EINVAL (the geometry is impossible), EIO (the journal refused a repair).
Result<CheckReport> check(pmem::Region& region, const Superblock& super,
                          const CheckOptions& options);

}  // namespace streamfs::meta
