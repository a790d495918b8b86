#include <cstdint>
#include <memory>

#include "fuse-fs/meta/engine.h"
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

}  // namespace

void run_image(const Input& input) {
  Image& base = image(input.flags);
  pmem::ScratchRegion& region = *base.region;
  const Run run(region);
  FixedClock clock;
  damage(region, base, input);
  for (const bool last : {false, true}) {
    const auto engine = mount(region, clock);
    if (!engine) return;
    if (last) {
      if ((input.flags & kReadTwice) != 0) (void)walk(*engine);
      return;
    }
    auto found = walk(*engine);
    operate(*engine, region, found, input.operations);
    if ((input.flags & kDamageTwice) != 0) {
      damage(region, base, input);
    } else {
      (void)engine->close_clean(0);
    }
  }
}

}  // namespace streamfs::fuzz
