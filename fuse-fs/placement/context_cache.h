// Chooses the contexts that get a vStream of their own, and those that are displaced.
//
// A context is measured under a number of its own and shown as its program's vStream. It earns a
// vStream once its lifetime is known to differ from the rest's by more than kEarnedRatio. Splits
// take all files of one extension first, then the files of one directory.
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.h"
#include "fuse-fs/placement/context.h"
#include "fuse-fs/placement/lifetime.h"

namespace streamfs::placement {

// Contexts that have written fewer pages are not split off.
inline constexpr uint64_t kEarnedPages = 256;
inline constexpr double kEarnedRatio = 2;

struct ContextSeen {
  VStreamId vstream, shown;  // its own number, and the vStream that it is shown as
  Context context;
  LifetimeTable::Seen seen;
  uint32_t owner = 0;
  uint64_t last_written = 0;    // clock of the device, pages
  uint64_t forgotten_live = 0;  // live pages of displaced contexts that are shown as this one
  bool is_program() const { return context.ext.empty() && context.dir.empty(); }
  bool is_shown() const { return shown == vstream; }
};

// A context that has earned a vStream: a given one, or all files of one extension of a program. The
// latter may have no number yet.
struct ContextSplit {
  Context context;
  std::optional<VStreamId> vstream;
};
// Returns the contexts to split off. Requires: `contexts` holds all contexts.
std::vector<ContextSplit> contexts_to_split(const std::vector<ContextSeen>& contexts);

// Returns at most `limit` of the owner's contexts, the next to displace first. First come contexts
// without a vStream of their own and without live data, then others without a vStream of their own,
// then those with one. Within each group the least recently written comes first. Never returns a
// context with a vStream of its own that has live data (forgotten_live included), that others are
// shown as, or that is a program with other known contexts.
std::vector<VStreamId> contexts_to_evict(const std::vector<ContextSeen>& contexts, uint32_t owner,
                                         size_t limit);

}  // namespace streamfs::placement
