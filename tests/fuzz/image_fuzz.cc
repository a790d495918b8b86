#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/assert.h"
#include "base/types.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/intent_log.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/recording_region.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/walk.h"

namespace streamfs::fuzz {
namespace {

std::unique_ptr<meta::Engine> mount(pmem::Region& region, Clock& clock) {
  const auto super = meta::load_superblock(region, true);
  if (!super.ok()) return nullptr;
  auto engine = meta::Engine::open(region, *super, clock, {false, false});
  return engine.ok() ? std::move(*engine) : nullptr;
}

void damage(pmem::Region& region, const Image& image, const Input& input) {
  const auto changed = apply_damage(region, image, input.items);
  if ((input.flags & kFixChecksums) != 0) fix_checksums(region, image.geometry, changed);
}

// Reads every block that the intent log holds. Returns false if a mount refuses the log.
bool intents_are_possible(pmem::Region& region, const meta::Geometry& geometry) {
  const auto salvaged = meta::IntentLog::salvage(region, geometry);
  if (!salvaged.ok()) return true;  // there is none
  std::array<std::byte, kBlockSize> block;
  for (const meta::IntentLog::Found& each : (*salvaged)->entries()) {
    SFS_ASSERT(geometry.valid_block(each.block.value));
    if (!each.unreadable) (*salvaged)->read(each.place, block);
  }
  const auto log = meta::IntentLog::open(region, geometry);
  SFS_ASSERT(log.ok() == !(*salvaged)->damage().any());
  if (!log.ok()) return false;
  SFS_ASSERT((*log)->entries_found() == (*salvaged)->entries_found());
  for (const meta::IntentLog::Found& each : (*log)->found()) {
    SFS_ASSERT(each.counts && !each.unreadable && geometry.valid_block(each.block.value));
    (*log)->read(each.place, block);
  }
  return true;
}

// Begins the log anew and puts an entry there, which the next mount finds alone.
void use_intent_log(pmem::Region& region, const meta::Engine& engine) {
  const auto log = meta::IntentLog::open(region, engine.geometry());
  if (!log.ok()) return;
  (*log)->start();
  SFS_ASSERT((*log)->used_bytes() == 0);
  std::array<std::byte, kBlockSize> content{};
  content[kLineSize] = std::byte{9};
  {
    const auto batch = (*log)->begin(1);
    SFS_ASSERT(batch != nullptr);
    batch->append({InodeId{9}, BlockNo{engine.geometry().super().first_data_block}, {}, content});
    region.fence(batch->flushed());
    batch->keep();
  }
  const auto again = meta::IntentLog::open(region, engine.geometry());
  SFS_ASSERT(again.ok() && (*again)->entries_found() == 1);
}

}  // namespace

void run_image(const Input& input) {
  Image& base = image(input.flags);
  pmem::ScratchRegion& region = *base.region;
  const Run run(region);
  FixedClock clock;
  damage(region, base, input);
  for (const bool last : {false, true}) {
    const auto engine = mount(region, clock);
    if (!engine || !intents_are_possible(region, engine->geometry())) return;
    if (last) {
      if ((input.flags & kReadTwice) != 0) (void)walk(*engine);
      return;
    }
    auto found = walk(*engine);
    use_intent_log(region, *engine);
    operate(*engine, region, found, input.operations);
    if ((input.flags & kDamageTwice) != 0) {
      damage(region, base, input);
    } else {
      (void)engine->close_clean(0);
    }
  }
}

}  // namespace streamfs::fuzz
