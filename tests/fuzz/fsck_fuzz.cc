#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>

#include "base/assert.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/intent_log.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/recording_region.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/targets.h"

namespace streamfs::fuzz {
namespace {

void print(const char* when, const meta::CheckReport& report) {
  for (const auto& problem : report.problems) {
    std::fprintf(stderr, "%s%s: %s\n", when, problem.repaired ? ", repaired" : "",
                 problem.text.c_str());
  }
}

void expect_nothing_repaired(const meta::CheckReport& again, const meta::CheckReport& first) {
  if (std::ranges::none_of(again.problems, &meta::CheckReport::Problem::repaired)) return;
  print("first repair", first);
  print("second repair", again);
  assertion_failed("the second repair finds nothing to do", __FILE__, __LINE__);
}

// fsck works on what recovery left.
Result<meta::Superblock> recover(pmem::Region& region) {
  SFS_ASSIGN(const meta::Superblock super, meta::load_superblock(region, false));
  SFS_ASSIGN(const meta::Geometry geometry, meta::Geometry::from(super));
  SFS_TRY(meta::recover_journal(region, geometry));
  return super;
}

// All readable entries are read, and a log that was reset is empty.
void expect_repairable_intent_log(pmem::Region& region, const meta::Superblock& super) {
  const auto geometry = meta::Geometry::from(super);
  SFS_ASSERT(geometry.ok());
  const auto log = meta::IntentLog::salvage(region, *geometry);
  if (!log.ok()) return;  // there is none
  std::array<std::byte, kBlockSize> block;
  for (const meta::IntentLog::Found& each : (*log)->entries()) {
    if (!each.unreadable) (*log)->read(each.place, block);
  }
  if ((*log)->damage().any()) {
    (*log)->reset();
  } else {
    (*log)->start();
  }
  const auto empty = meta::IntentLog::open(region, *geometry);
  SFS_ASSERT(empty.ok() && (*empty)->entries_found() == 0);
}

}  // namespace

void run_fsck(const Input& input) {
  Image& base = image(input.flags);
  pmem::ScratchRegion& region = *base.region;
  const Run run(region);
  const auto changed = apply_damage(region, base, input.items);
  if ((input.flags & kFixChecksums) != 0) fix_checksums(region, base.geometry, changed);

  const auto super = recover(region);
  if (!super.ok()) return;
  const auto found = meta::check(region, *super, {.repair = false});
  SFS_ASSERT(found.ok());  // the geometry holds: recovery had it
  const auto repaired = meta::check(region, *super, {.repair = true});
  if (!repaired.ok()) return;  // refused, and said why
  const auto now = meta::load_superblock(region, false);
  SFS_ASSERT(now.ok());
  const auto again = meta::check(region, *now, {.repair = true});
  SFS_ASSERT(again.ok());
  expect_nothing_repaired(*again, *repaired);
  if (!std::ranges::all_of(repaired->problems, &meta::CheckReport::Problem::repaired)) return;
  SFS_ASSERT(again->sound());
  expect_repairable_intent_log(region, *now);
  FixedClock clock;
  const auto engine = meta::Engine::open(region, *now, clock, {false, false});
  SFS_ASSERT(engine.ok());
  SFS_ASSERT((*engine)->close_clean(0).ok());
}

}  // namespace streamfs::fuzz
