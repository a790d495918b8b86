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
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/geometry.h"

namespace streamfs::data {
namespace {

constexpr uint64_t kLargestStep = uint64_t{1} << 30;

}  // namespace

uint64_t MetaGrowth::size_max(const meta::Superblock& super) const {
  if (!limits_.automatic || !limits_.extensible) return super.meta_size;
  const uint64_t most = limits_.size_max != 0 ? limits_.size_max : meta::meta_size_max(super);
  return std::max(round_down(most, meta::kUnitSize), super.meta_size);
}

uint64_t MetaGrowth::growable_bytes() const {
  const meta::Superblock& super = engine_.geometry().super();
  const uint64_t bytes = size_max(super) - super.meta_size;
  return bytes < kMiB ? 0 : bytes;
}

uint64_t MetaGrowth::growable_files() const {
  const meta::Superblock& super = engine_.geometry().super();
  return meta::inodes_possible(super, size_max(super)) -
         meta::inodes_possible(super, super.meta_size);
}

Result<void> MetaGrowth::grow_by(uint64_t bytes) {
  const meta::Superblock& super = engine_.geometry().super();
  GrowOptions options;
  options.meta_bytes = super.meta_size + std::min(bytes, growable_bytes());
  options.meta_alone = true;
  options.planned_meta = size_max(super);
  return grow_(options);
}

// Makes META grow by a step. Errors: EBUSY, a growth by command or an unmount is under way.
Result<void> MetaGrowth::grow_once() {
  if (!engine_.heap_nearly_full()) return {};
  if (growable_bytes() == 0 || clock_.monotonic_ms() < retry_ms_) return Error{ENOSPC, "META"};
  const uint64_t half = engine_.geometry().region_bytes(meta::RegionKind::kHeap) / 2;
  Result<void> done = grow_by(std::min(round_up(half, kMiB), kLargestStep));
  if (!done.ok() && done.error().code == ENOSPC) done = grow_by(kMiB);
  if (!done.ok() && done.error().code == EBUSY) return done;
  pause_ms_ = done.ok() ? kFirstRetryMs : std::min(2 * pause_ms_, kLastRetryMs);
  if (!done.ok()) retry_ms_ = clock_.monotonic_ms() + pause_ms_;
  const MutexLock lock(mutex_);
  failed_ = done.ok() ? std::string{} : done.error().message();
  return done;
}

bool MetaGrowth::make_room(uint64_t before) {
  const auto grew = [&] { return engine_.geometry().meta_size() > before; };
  do {
    if (grew()) return true;
    if (growable_bytes() > 0 && growths_.run([this] { return grow_once(); }).ok()) return true;
  } while (await_());
  return grew();
}

void MetaGrowth::keep_room() {
  Result<void> done;
  if (engine_.heap_nearly_full() && growable_bytes() > 0)
    done = growths_.run([this] { return grow_once(); });
  if (!done.ok() && done.error().code == EBUSY) return;
  const std::string why = engine_.heap_nearly_full() ? advice() : std::string{};
  {
    const MutexLock lock(mutex_);
    if (std::exchange(said_, !why.empty()) || why.empty()) return;
  }
  log_event(Event::kMetaFull, spdlog::level::warn, "META is nearly full: " + why);
}

std::string MetaGrowth::advice() const {
  constexpr const char* kCommand = "streamctl grow --meta-size SIZE MOUNTPOINT makes it larger";
  if (!limits_.extensible) return "it uses all of its device; delete files or use a larger device";
  if (!limits_.automatic)
    return fmt::format("{}; with -o meta_growth=auto it grows by itself", kCommand);
  if (growable_bytes() == 0)
    return fmt::format("it has its largest size (meta_size_max); {}", kCommand);
  const MutexLock lock(mutex_);
  return failed_.empty() ? std::string{} : fmt::format("it could not grow: {}", failed_);
}

MetaRoom MetaGrowth::room() const {
  const meta::Superblock& super = engine_.geometry().super();
  MetaRoom out;
  out.bytes = super.meta_size;
  out.bytes_max = size_max(super);
  out.grows = limits_.automatic && limits_.extensible;
  if (engine_.heap_nearly_full()) out.advice = advice();
  return out;
}

}  // namespace streamfs::data
