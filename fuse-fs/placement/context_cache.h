// Which contexts get a vStream of their own, and which are given up for others.
//
// A context is measured from its first file on, under a number of its own, and shown as its
// program's vStream. It earns a vStream when enough was written and has died to say that its
// lifetime differs from that of the rest by more than twice: first all files of one extension that
// a program writes, then those in one directory.
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "fuse-fs/placement/context.h"
#include "fuse-fs/placement/lifetime.h"

namespace streamfs::placement {

// Below so many pages written nothing is split off.
inline constexpr uint64_t kEarnedPages = 256;
inline constexpr double kEarnedRatio = 2;

struct ContextSeen {
  VStreamId vstream, shown;  // the number it is measured by, the vStream it is shown as
  Context context;
  LifetimeTable::Seen seen;
  uint32_t owner = 0;
  uint64_t last_written = 0;    // clock of the device, pages
  uint64_t forgotten_live = 0;  // pages alive of contexts given up that are shown as this one
  bool is_program() const { return context.ext.empty() && context.dir.empty(); }
  bool is_shown() const { return shown == vstream; }
};

// Contexts that have earned a vStream: one of `contexts`, or a program's extension as a whole,
// without a directory, which need not be there yet.
std::vector<Context> contexts_to_split(const std::vector<ContextSeen>& contexts);

// At most `limit` of the owner's contexts, in the order in which to give them up, each time the one
// least recently written first: without a vStream of their own and without live data; without a
// vStream of their own; without live data. A context that others are shown as, or that is a program
// of which contexts are known, is kept.
std::vector<VStreamId> contexts_to_evict(const std::vector<ContextSeen>& contexts, uint32_t owner,
                                         size_t limit);

}  // namespace streamfs::placement
