#include "ssd/ssd.h"

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "ssd/ftl/emmc/firmware.h"
#include "ssd/ftl/firmware.h"
#include "ssd/ftl/hybrid_firmware.h"
#include "ssd/ftl/log_block_firmware.h"
#include "ssd/ftl/page_map_firmware.h"
#include "ssd/ftl/vstream/firmware.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/media/image_media.h"
#include "ssd/media/nand_faults.h"
#include "ssd/stats.h"

namespace streamfs::ssd {
namespace {

Geometry geometry_for(const Image& image, const SsdOptions& options) {
  Geometry geometry = image.geometry();
  if (options.streams_off && geometry.ftl == FtlKind::kPageMap)
    geometry.gc_mode = GcMode::kOwnFrontier;
  return geometry;
}

std::unique_ptr<Firmware> make_firmware(const FirmwareParts& parts) {
  switch (parts.geometry.ftl) {
    case FtlKind::kPageMap:
      break;
    case FtlKind::kEmmc:
      return std::make_unique<emmc::EmmcFirmware>(parts);
    case FtlKind::kVStream:
      return std::make_unique<vstream::VStreamFirmware>(parts);
    case FtlKind::kHybrid:
      return std::make_unique<HybridFirmware>(parts);
    case FtlKind::kLogBlock:
      return std::make_unique<LogBlockFirmware>(parts);
  }
  return std::make_unique<PageMapFirmware<ImageMedia>>(parts);
}

}  // namespace

Result<std::unique_ptr<Ssd>> Ssd::open(const std::string& path, const SsdOptions& options) {
  const auto access = options.read_only ? Image::Access::kHoldRead : Image::Access::kHold;
  SFS_ASSIGN(std::unique_ptr<Image> image, Image::open(path, access, options.wait_seconds));
  const Geometry geometry = geometry_for(*image, options);
  std::unique_ptr<Ssd> ssd(new Ssd(std::move(image), geometry, options));
  SFS_TRY(ssd->recover());
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
      firmware_(make_firmware({*image_, units_, read_only_ ? idle_ : image_->shared(), latency_,
                               faults_for(options), read_only_})) {}

NandFaults* Ssd::faults_for(const SsdOptions& options) {
  if (options.faults != nullptr) return options.faults;
  return geometry_.failures.any() ? &own_faults_ : nullptr;
}

Result<void> Ssd::recover() {
  SharedState& shared = read_only_ ? idle_ : image_->shared();
  const SharedUpdate update(shared);
  SFS_TRY(firmware_->power_up());
  shared.live.occupied_blocks = units_.blocks - firmware_->free_blocks();
  return {};
}

// Makes requests fail after a power cut, so that none is acknowledged any more.
Result<void> Ssd::powered(Result<void> done) const {
  return firmware_->powered() ? std::move(done)
                              : Result<void>(Error{EIO, "emulated SSD: no power"});
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
