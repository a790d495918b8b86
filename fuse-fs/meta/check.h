// Walks all of META and reports the invariants that do not hold. fsck.streamfs and the tests use it
// on an unmounted filesystem, after recover_journal().
//
// Invariants:
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
// The following is not checked, because any value is right: checksums of blocks (0 is "not known",
// and a free block keeps its last), words of free slots except the first, dirty units, and extents
// past a file's size (preallocated).
//
// A repair mends only simple damage, through the journal. It never removes a byte of a file, nor a
// name that leads somewhere from the root. It frees lost blocks and units, and corrects bits,
// counts, sizes and parents. It names inodes without a name in /lost+found. A directory of a loop
// goes there too and loses its name in the loop. A second check reports none of this damage.
//
// Several threads read large metadata. The problems and their order do not depend on the number of
// threads.
//
// Thread safety: none; nothing else may use the region.
// After a crash: each repair is there whole or not at all.
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
  // Is called by the thread that called check(), with the pass (1 inodes and names, 2 links) and
  // the number of its pieces of work that threads have begun.
  std::function<void(int pass, uint64_t done, uint64_t total)> progress = {};
  const std::atomic<bool>* cancelled = nullptr;  // once it is true, check() returns ECANCELED
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
};

// Checks META, and repairs it if options.repair is set. In a META that is kept twice it first mends
// each object that is damaged in one copy from the other, also without options.repair. It repairs
// nothing if a page of META cannot be read, the watermark is impossible, or the walks contradict
// each other; the report then has a problem that says so.
// Errors: EINVAL (the geometry is impossible), EIO (the journal refused a repair), ENOSPC (no room
// for one), ECANCELED (no repair was begun).
Result<CheckReport> check(pmem::Region& region, const Superblock& super,
                          const CheckOptions& options);

}  // namespace streamfs::meta
