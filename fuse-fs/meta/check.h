// Walks everything in META from the root and says what does not hold. fsck.streamfs and the tests
// use it on a filesystem that nobody has mounted, after recover_journal().
//
// What must hold:
//   - both superblocks are whole and the same; a clean one knows how many inodes are in use; the
//     watermark is a sequence number;
//   - an inode's checksum and number are right; it has no flags, pointers or blocks that its type
//     cannot have; its block count is that of its extents, which do not overlap; attributes, ACLs
//     and long symlinks decode, and blobs have their checksums;
//   - every name leads to an inode of the type it says and has its own hash; no name twice in a
//     directory; a directory has one name, knows its parent and its size, and is reached from the
//     root; link counts are the numbers of names;
//   - an inode without a name is on the orphan list, and nothing else is;
//   - every heap unit of a chain belongs to one object, and the heap map says so; no unit is lost;
//     nothing is published where the map says "free";
//   - every block belongs to one extent and is marked allocated; no other block is; none lies below
//     the first data block; none is both allocated and untrimmed;
//   - no two vStream slots have one number or one name.
// What may be anything: checksums of blocks (0 is "not known", and a free block keeps its last),
// free slots but their first word, dirty units, extents past a file's size (preallocated).
//
// Repair does the simple things, through the journal, and never takes a byte away, nor a name that
// leads somewhere from the root: lost blocks and units are freed; bits, counts, sizes and parents
// set right; inodes without a name go to /lost+found, and so does a directory of a loop, which
// loses its name in it. A second check finds nothing of these.
//
// Large metadata is read by all cores; problems and their order are the same whatever their number.
//
// Thread safety: none; the region is nobody else's. What a crash leaves: each repair whole or not.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::meta {

struct CheckOptions {
  bool repair = false;
  unsigned threads = 0;  // 0: as many as the metadata's size is worth
  // Called by check()'s own thread: the pass (1 inodes and names, 2 links), what is done of what.
  std::function<void(int pass, uint64_t done, uint64_t total)> progress = {};
  const std::atomic<bool>* cancelled = nullptr;  // when it is set, check() gives up
};

struct CheckReport {
  struct Problem {
    std::string text;  // a sentence that names the object
    bool repaired = false;
    InodeId lost = {};  // an inode whose new name in /lost+found is the repair, or 0
  };
  std::vector<Problem> problems;
  uint64_t inodes = 0;  // in use, damaged ones too
  uint64_t directories = 0, files = 0, others = 0, orphans = 0;
  uint64_t blocks_in_use = 0, units_in_use = 0;

  bool sound() const { return problems.empty(); }
  bool all_repaired() const;
};

// Errors: EINVAL (the geometry is impossible), EIO (the journal refused a repair), ENOSPC (no room
// for one), ECANCELED (nothing was changed).
Result<CheckReport> check(pmem::Region& region, const Superblock& super,
                          const CheckOptions& options);

}  // namespace streamfs::meta
