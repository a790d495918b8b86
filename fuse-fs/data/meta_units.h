// Finds heap units of META for a change that failed with ENOSPC.
//
//   change ── ENOSPC ──► free what removed files hold ──► change ── ENOSPC ──► META grows ──┐
//                                                           ▲                              │
//                                                           └──────── at most 3 times ─────┘
//
// Thread safety: any thread, with no lock of the metadata engine held: a growth flushes DATA.
// After a crash: what the change and a growth leave.
#pragma once

#include <cerrno>
#include <cstdint>

#include "base/waiting.h"
#include "fuse-fs/data/core.h"
#include "fuse-fs/meta/engine.h"

namespace streamfs::data {

// Returns what `change` returns; in a Trying (base/waiting.h) would_wait() instead of ENOSPC.
// Requires: `change` may be called again after ENOSPC.
template <typename Change>
auto with_meta_units(const Core& core, const Change& change) -> decltype(change()) {
  constexpr int kGrowthsMax = 3;
  auto done = change();
  if (done.ok() || done.error().code != ENOSPC) return done;
  if (!may_wait()) return would_wait();
  core.free_orphans();
  for (int growths = 0;; ++growths) {
    const uint64_t size = core.engine.geometry().meta_size();
    done = change();
    if (done.ok() || done.error().code != ENOSPC) return done;
    if (growths == kGrowthsMax || !core.make_meta_room(size)) return done;
  }
}

}  // namespace streamfs::data
