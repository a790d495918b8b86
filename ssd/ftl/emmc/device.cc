#include "ssd/ftl/emmc/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "ssd/ftl/emmc/context_log.h"
#include "ssd/ftl/emmc/interface.h"
#include "ssd/ftl/page_map.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/media/spare_scan.h"

namespace streamfs::ssd::emmc {

Result<void> Device::create(const std::string& path, GeometryRequest request) {
  request.ftl = FtlKind::kEmmc;
  if (request.streams != kStreams + 1 || request.gc_mode != GcMode::kShared || request.plp)
    return Error{EINVAL,
                 "impossible geometry: an eMMC has 4 streams beside the default one, one "
                 "active block for copies and a volatile buffer"};
  if (request.map_unit_bytes != kPageBytes)
    return Error{EINVAL, "impossible geometry: an eMMC maps pages of 4 KiB"};
  if (request.failures.any() || request.bad_blocks != 0)
    return Error{EINVAL, "impossible geometry: this eMMC's flash does not fail"};
  SFS_ASSIGN(const Geometry geometry, plan_geometry(request));
  return Image::create(path, geometry, false);
}

Result<std::unique_ptr<Device>> Device::open(const std::string& path, const Options& options) {
  SFS_ASSIGN(std::unique_ptr<Image> image, Image::open(path, Image::Access::kHold, 0));
  SFS_TRY(image->made_for(FtlKind::kEmmc));
  std::unique_ptr<Device> device(new Device(std::move(image), options));
  SFS_TRY(device->recover());
  return device;
}

Device::Device(std::unique_ptr<Image> image, const Options& options)
    : image_(std::move(image)),
      geometry_(image_->geometry()),
      context_interval_(options.context_pages != 0 ? options.context_pages
                                                   : geometry_.pages_per_block),
      switch_(geometry_.user_pages),
      latency_(timing_of(geometry_.nand.cell), geometry_, image_->shared().now),
      media_(*image_, latency_, options.faults),
      victim_(geometry_),
      router_(geometry_),
      ftl_(geometry_, media_, victim_, router_, image_->shared().now, image_->shared().live) {}

// Reads the last context and the blocks that were not full in it. Without a context it reads the
// whole spare area.
Result<void> Device::recover() {
  const std::optional<Context> context = media_.log().recover();
  blocks_read_ = geometry_.blocks;
  const SpareScan scan = context ? scan_spare_since(*image_, true, context->base, blocks_read_)
                                 : scan_spare(*image_, true);
  std::vector<RecoveredBlock> blocks = scan.blocks;
  media_.restore(scan);
  for (const BlockIndex block : scan.half_erased) {
    SFS_ASSERT(media_.erased(block));
    ++blocks[block].erases;
  }
  ftl_.restore(blocks, scan.location, scan.next_sequence);
  if (!media_.powered() || !media_.write_context()) return powered(0, "power-up");
  return {};
}

Result<void> Device::powered(int error, const char* what) {
  if (!media_.powered()) return Error{EIO, "emulated eMMC: no power"};
  if (error != 0) return Error{error, fmt::format("emulated eMMC: {}", what)};
  return {};
}

Result<void> Device::check_range(uint64_t page, uint64_t count) const {
  if (page < geometry_.user_pages && count <= geometry_.user_pages - page) return {};
  return Error{EINVAL, fmt::format("pages {} + {} lie beyond the device's {}", page, count,
                                   geometry_.user_pages)};
}

Result<void> Device::write(uint32_t cmd23, uint64_t page, ConstBytes bytes) {
  SFS_ASSERT(bytes.size() % kPageBytes == 0);
  const uint64_t pages = bytes.size() / kPageBytes;
  SFS_TRY(check_range(page, pages));
  const SharedUpdate update(image_->shared());
  const FrontierId frontier = switch_.frontier(context_id_of(cmd23), live().live_pages);
  latency_.begin_write(static_cast<uint32_t>(pages));
  const int error = ftl_.write(static_cast<Lpn>(page), static_cast<uint32_t>(pages), frontier,
                               frontier, bytes.data());
  latency_.end_write();
  since_context_ += pages;
  if (error == 0 && since_context_ >= context_interval_) {
    since_context_ = 0;
    (void)media_.write_context();
  }
  return powered(error, "write");
}

Result<void> Device::read(uint64_t page, Bytes bytes) {
  SFS_TRY(check_range(page, bytes.size() / kPageBytes));
  for (uint64_t done = 0; done < bytes.size(); done += kPageBytes, ++page) {
    const Bytes one = bytes.subspan(done, kPageBytes);
    const Ppn at = ftl_.location(static_cast<Lpn>(page));
    if (at == kNoPage) {
      std::ranges::fill(one, std::byte{0});
    } else if (media_.flash().read(at, one.data(), 1) != 0) {
      return Error{EIO, fmt::format("emulated eMMC: page {} does not fit its checksum", page)};
    }
  }
  return {};
}

Result<void> Device::trim(uint64_t page, uint64_t count) {
  SFS_TRY(check_range(page, count));
  const SharedUpdate update(image_->shared());
  for (uint64_t i = page; i < page + count; ++i) {
    const auto lpn = static_cast<Lpn>(i);
    ftl_.trim(lpn);
    media_.trimmed(lpn, ftl_.take_sequence());
  }
  return powered(0, "trim");
}

Result<void> Device::flush() {
  const SharedUpdate update(image_->shared());
  const int error = ftl_.flush();
  ++image_->shared().now.flushes;
  return powered(error, "flush");
}

Result<void> Device::write_ext_csd(uint8_t index, uint8_t value) {
  if (index != kExtCsdStreams || value > 1)
    return Error{EINVAL, fmt::format("EXT_CSD[{}] cannot be {}", index, value)};
  switch_.set(value == 1);
  return {};
}

uint8_t Device::read_ext_csd(uint8_t index) const {
  return index == kExtCsdStreams && switch_.enabled() ? 1 : 0;
}

}  // namespace streamfs::ssd::emmc
