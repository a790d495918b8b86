#include "ssd/ssd.h"

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "ssd/ftl/page_map.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/media/nand_faults.h"
#include "ssd/media/spare_scan.h"
#include "ssd/stats.h"

namespace streamfs::ssd {
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
  SFS_TRY(image->made_for(FtlKind::kPageMap));
  const Geometry geometry = geometry_for(*image, options);
  std::unique_ptr<Ssd> ssd(new Ssd(std::move(image), geometry, options));
  ssd->recover();
  SFS_TRY(ssd->powered({}));
  return ssd;
}

Ssd::Ssd(std::unique_ptr<Image> image, const Geometry& geometry, const SsdOptions& options)
    : read_only_(options.read_only),
      streams_off_(options.streams_off),
      real_time_(options.real_time),
      geometry_(geometry),
      units_(geometry.in_map_units()),
      unit_buffer_(geometry.map_unit_pages * kPageBytes),
      image_(std::move(image)),
      idle_(image_->shared()),
      latency_(timing_of(geometry.nand.cell), geometry, counters()),
      own_faults_(geometry.failures),
      media_(*image_, latency_, faults_for(options)),
      victim_(units_),
      router_(units_),
      ftl_(units_, media_, victim_, router_, counters(), live()) {}

NandFaults* Ssd::faults_for(const SsdOptions& options) {
  if (options.faults != nullptr) return options.faults;
  return geometry_.failures.any() ? &own_faults_ : nullptr;
}

// Recovers by the spare-area scan. layout.h states which version of a page counts.
void Ssd::recover() {
  const SpareScan scan = scan_spare(*image_, !read_only_);
  SharedState& shared = read_only_ ? idle_ : image_->shared();
  const SharedUpdate update(shared);
  shared.damaged_pages = scan.damaged_pages;
  std::vector<RecoveredBlock> blocks = scan.blocks;
  media_.restore(scan);
  for (const BlockIndex block : scan.half_erased) {
    if (read_only_) break;
    if (media_.erased(block)) {
      ++blocks[block].erases;
      ++counters().erases;
    } else {
      blocks[block].retired = true;
      ++counters().erase_failures;
    }
  }
  ftl_.restore(blocks, scan.location, scan.next_sequence);
  shared.live.occupied_blocks = units_.blocks - ftl_.free_blocks();
}

// Makes requests fail after a power cut, so that none is acknowledged any more.
Result<void> Ssd::powered(Result<void> done) const {
  return media_.powered() ? std::move(done) : Result<void>(Error{EIO, "emulated SSD: no power"});
}

PStreamId stream_of(uint8_t dtype, uint16_t dspec) {
  return PStreamId(dtype == kStreamsDirective || dtype == kPlacementDirective ? dspec
                                                                              : uint16_t{0});
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

}  // namespace streamfs::ssd
