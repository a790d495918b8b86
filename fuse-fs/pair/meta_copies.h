// META kept twice: which copy is current, and bringing the other into step with it.
//
//   in step                     both are used
//   missing, or unreadable      the other is used alone: degraded, and said aloud
//   older, unfinished, empty,   made anew from the other before anyone is answered; a mount that
//   cut short, or its super-      only reads leaves it alone, and uses the other. One that cannot
//   blocks damaged                be written is as one that is missing
//
// Copies are in step if both count as many attachments and have the same mirror token, which is
// drawn anew whenever one goes on without the other. After a reboot without an unmount, one that is
// not persistent may lack anything the kernel had not written yet: it is made anew, too.
//
// Thread safety: none; mounting and checking call this. What a crash leaves: a copy being made says
// of itself that it is unfinished; what it is made from is only read.
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
  std::optional<Attached> attached;  // as DATA says
  bool read_only;
  bool overwrite;  // where a copy should be, whatever it holds; a filesystem without gets a second
  bool make_missing;  // a file where a copy should be
  double wait_seconds;
};

struct MetaCopies {
  std::unique_ptr<pmem::Region> region;  // a mirror, or the one copy there is
  meta::Superblock super;
  std::string degraded;   // what is missing and why; empty: nothing
  bool in_order = false;  // what the others are copies of kept the order of its stores
};

// Nothing: no copy is current; whoever has a metadata log may rebuild one.
// EMEDIUMTYPE: another filesystem's, something else that is there, the same place twice; ENOSPC: a
// place that is too small; EBUSY and EACCES of either.
Result<std::optional<MetaCopies>> open_copies(const CopiesWanted& wanted);

}  // namespace streamfs::pair
