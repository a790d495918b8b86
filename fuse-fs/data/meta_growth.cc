#include "fuse-fs/data/meta_growth.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "base/event.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/geometry.h"

namespace streamfs::data {
namespace {

constexpr uint64_t kFullShare = 10;  // META is nearly full when a tenth of its heap is left

}  // namespace

bool MetaGrowth::nearly_full() const {
  return !engine_.heap_has(engine_.geometry().heap_units() / kFullShare);
}

uint64_t MetaGrowth::size_max() const {
  const meta::Superblock& super = engine_.geometry().super();
  const uint64_t most = limits_.size_max != 0 ? limits_.size_max : meta::meta_size_max(super);
  const bool may_grow = limits_.automatic && limits_.extensible;
  return may_grow ? std::max(round_down(most, meta::kUnitSize), super.meta_size) : super.meta_size;
}

uint64_t MetaGrowth::growable_units() const {
  return (size_max() - engine_.geometry().meta_size()) / meta::kUnitSize;
}

Result<void> MetaGrowth::grow_once() {
  const uint64_t now = clock_.monotonic_ms();
  if (!nearly_full() || growable_units() == 0 || now < retry_ms_) return {};
  const uint64_t size = engine_.geometry().meta_size(), most = size_max();
  const uint64_t step = engine_.geometry().region_bytes(meta::RegionKind::kHeap) / 2;
  GrowOptions options;
  options.meta_bytes = std::min(most, size + round_up(step, kMiB));
  options.meta_alone = true;
  options.planned_meta = most;
  Result<void> done = grow_(options);
  if (!done.ok() && done.error().code == EBUSY) return done;  // someone else grows it, or it ends
  if (!done.ok()) retry_ms_ = now + kRetryMs;
  const MutexLock lock(mutex_);
  failed_ = done.ok() ? std::string{} : done.error().message();
  return done;
}

bool MetaGrowth::make_room() {
  const uint64_t before = engine_.geometry().meta_size();
  if (growable_units() > 0) (void)growths_.run([this] { return grow_once(); });
  return engine_.geometry().meta_size() > before;
}

void MetaGrowth::keep_room() {
  if (nearly_full() && growable_units() > 0) (void)growths_.run([this] { return grow_once(); });
  const bool full = nearly_full();
  std::string failed;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(said_, full) || !full) return;
    failed = failed_;
  }
  log_event(Event::kMetaFull, spdlog::level::warn, "META is 90 % full: " + advice(failed));
}

std::string MetaGrowth::advice(const std::string& failed) const {
  constexpr const char* kCommand = "streamctl grow --meta-size SIZE MOUNTPOINT makes it larger";
  if (!limits_.extensible) return "it uses all of its device; delete files or use a larger device";
  if (!failed.empty()) return fmt::format("it could not grow: {}", failed);
  if (!limits_.automatic) return fmt::format("{}, and meta_growth=auto does so in time", kCommand);
  return fmt::format("it has its largest size (meta_size_max); {}", kCommand);
}

MetaRoom MetaGrowth::room() const {
  MetaRoom out;
  out.bytes = engine_.geometry().meta_size();
  out.bytes_max = size_max();
  out.grows = limits_.automatic && limits_.extensible;
  if (!nearly_full()) return out;
  const MutexLock lock(mutex_);
  if (growable_units() == 0 || !failed_.empty()) out.advice = advice(failed_);
  return out;
}

}  // namespace streamfs::data
