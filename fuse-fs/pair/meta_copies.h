// META kept twice: finds the current copy and brings the other into step with it.
//
//   in step                     both are used
//   missing, or unreadable      the current copy is used alone (*degraded*), with a warning. With
//                               `make_missing` or `overwrite` a missing copy is made instead
//   older, unfinished, empty,   rewritten from the current copy. A read-only open uses the current
//   cut short, or with          copy alone instead. If the rewrite fails with EIO, the open fails
//   damaged superblocks         with `overwrite`, and uses the current copy alone without
//
// Two copies are in step if they count the same number of attachments and have the same mirror
// token, which is drawn anew whenever one copy goes on without the other. If the machine went down
// while META was in use, a copy that is not persistent may lack stores that the kernel had not
// written back: the other copy is then rewritten, too.
//
// Thread safety: none; mounting and checking call this. After a crash: a copy that was being
// written is marked unfinished. The current copy is whole: at most its superblocks change, and only
// after the other copy is complete.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/pair/attachments.h"
#include "pmem/region.h"

namespace streamfs::pair {

struct CopiesWanted {
  std::array<std::string, 2> paths;
  const meta::DataLabel& label;
  std::optional<Attached> attached;  // as recorded on DATA
  bool read_only;
  // Overwrite also other data that lies in a copy's place, but never another filesystem's META. A
  // filesystem whose META is kept once gets a second copy.
  bool overwrite;
  bool make_missing;         // create a copy's file if it is missing
  bool declared_persistent;  // as in pmem::OpenOptions
  double wait_seconds;
};

struct MetaCopies {
  std::unique_ptr<pmem::Region> region;  // a mirror of both, or the one copy in use
  meta::Superblock super;
  std::string degraded;   // which copy is not in use, and why; empty: both are
  bool in_order = false;  // the medium of the current copy keeps stores in order
};

// Opens both places. Returns nullopt if neither holds a current copy: the caller may rebuild one
// from the metadata log. Errors: EMEDIUMTYPE (another filesystem's or version's META, other data,
// META that is kept once, the same place twice), ENOSPC (a place is too small), EIO (damaged
// superblocks that do not name this filesystem), EBUSY and EACCES of either place.
Result<std::optional<MetaCopies>> open_copies(const CopiesWanted& wanted);

}  // namespace streamfs::pair
