#include "emulator/ssd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "emulator/ftl/router.h"
#include "emulator/geometry.h"
#include "emulator/image.h"
#include "emulator/latency.h"
#include "emulator/layout.h"
#include "emulator/stats.h"

namespace streamfs::emulator {
namespace {

Geometry geometry_for(const Image& image, const SsdOptions& options) {
  Geometry geometry = image.geometry();
  if (options.streams_off) geometry.gc_mode = GcMode::kOwnFrontier;
  return geometry;
}

}  // namespace

Result<std::unique_ptr<Ssd>> Ssd::open(const std::string& path, const SsdOptions& options) {
  const auto access = options.read_only ? Image::Access::kHoldRead : Image::Access::kHold;
  SFS_ASSIGN(std::unique_ptr<Image> image, Image::open(path, access, options.wait_seconds));
  const Geometry geometry = geometry_for(*image, options);
  std::unique_ptr<Ssd> ssd(new Ssd(std::move(image), geometry, options));
  ssd->recover();
  return ssd;
}

Ssd::Ssd(std::unique_ptr<Image> image, const Geometry& geometry, const SsdOptions& options)
    : read_only_(options.read_only),
      streams_off_(options.streams_off),
      geometry_(geometry),
      units_(geometry.in_map_units()),
      unit_buffer_(geometry.map_unit_pages * kPageBytes),
      image_(std::move(image)),
      idle_(image_->shared()),
      latency_(Timing{}, geometry, counters()),
      media_(*image_, latency_),
      victim_(units_),
      router_(units_),
      ftl_(units_, media_, victim_, router_, counters(), live()) {}

bool Ssd::usable(const SpareEntry& entry, BlockIndex block) const {
  const auto covered = std::as_bytes(std::span(&entry, 1)).first(offsetof(SpareEntry, checksum));
  return entry.erases == image_->blocks()[block].erases && entry.checksum == crc32c(covered) &&
         (entry.lpn < units_.user_pages || entry.lpn == kNoPage);
}

// The spare-area scan: see layout.h for who wins.
void Ssd::recover() {
  std::vector<Ftl::RecoveredBlock> blocks(units_.blocks);
  std::vector<Ppn> location(units_.user_pages, kNoPage);
  const std::span<const uint64_t> trims = image_->trims();
  std::vector<uint64_t> newest(trims.begin(), trims.end());
  uint64_t last = newest.empty() ? 0 : *std::ranges::max_element(newest);
  uint64_t damaged = 0;
  const std::span<const SpareEntry> spare = image_->spare();
  for (BlockIndex block = 0; block < units_.blocks; ++block) {
    const BlockRecord& record = image_->blocks()[block];
    blocks[block].written = std::min(record.write_pointer, units_.pages_per_block);
    blocks[block].frontier =
        static_cast<FrontierId>(std::min(record.frontier, units_.frontiers() - 1));
    blocks[block].erases = record.erases;
    for (uint32_t i = 0; i < blocks[block].written; ++i) {
      const Ppn at = block * units_.pages_per_block + i;
      if (!usable(spare[at], block)) {
        ++damaged;
        continue;
      }
      last = std::max(last, spare[at].sequence);
      const Lpn page = spare[at].lpn;
      if (page == kNoPage || spare[at].sequence <= newest[page]) continue;
      newest[page] = spare[at].sequence;
      location[page] = at;
    }
  }
  SharedState& shared = read_only_ ? idle_ : image_->shared();
  const SharedUpdate update(shared);
  shared.damaged_pages = damaged;
  ftl_.restore(blocks, location, last + 1);
}

SsdStats Ssd::stats() {
  const WriteLock lock(ftl_mutex_);
  return stats_of(geometry_, read_only_ ? idle_ : image_->shared());
}

void Ssd::reset_stats() {
  if (read_only_) return;
  const WriteLock lock(ftl_mutex_);
  store_baseline(image_->shared());
}

Result<SsdStats> observe_stats(const std::string& path, Geometry* geometry, std::string* uuid) {
  SFS_ASSIGN(const std::unique_ptr<Image> image, Image::open(path, Image::Access::kObserve, 0));
  if (geometry != nullptr) *geometry = image->geometry();
  if (uuid != nullptr) *uuid = image->uuid();
  return stats_of(image->geometry(), snapshot(image->shared()));
}

Result<void> reset_stats(const std::string& path) {
  SFS_ASSIGN(const std::unique_ptr<Image> image, Image::open(path, Image::Access::kControl, 0));
  store_baseline(image->shared());
  return {};
}

}  // namespace streamfs::emulator
