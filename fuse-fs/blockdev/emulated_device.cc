#include "fuse-fs/blockdev/emulated_device.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/stats_json.h"
#include "ssd/background.h"
#include "ssd/geometry.h"
#include "ssd/real_time.h"
#include "ssd/ssd.h"

namespace streamfs::blockdev {

namespace {

std::string mechanism_of(const ssd::Geometry& geometry) {
  switch (geometry.ftl) {
    case ssd::FtlKind::kEmmc:
      return "emulated eMMC contexts";
    case ssd::FtlKind::kVStream:
      return "emulated vStreams";
    case ssd::FtlKind::kPageMap:
    case ssd::FtlKind::kHybrid:
    case ssd::FtlKind::kLogBlock:
      break;
  }
  return geometry.streams > 1 ? "emulated streams" : "none";
}

// Returns why the FTL has no streams, if it could have none.
std::string why_no_streams(const ssd::Geometry& geometry) {
  if (!ssd::runs_on_nand(geometry.ftl)) return "";
  return "the FTL " + std::string(name_of(geometry.ftl)) + " has no streams";
}

}  // namespace

ssd::SsdOptions ssd_options(const OpenOptions& options) {
  ssd::SsdOptions ssd;
  ssd.read_only = options.read_only;
  ssd.wait_seconds = options.wait_seconds;
  ssd.real_time = options.real_time;
  return ssd;
}

Result<std::unique_ptr<EmulatedDevice>> EmulatedDevice::open(const std::string& path,
                                                             const OpenOptions& options) {
  SFS_ASSIGN(std::unique_ptr<ssd::Ssd> ssd, ssd::Ssd::open(path, ssd_options(options)));
  return std::unique_ptr<EmulatedDevice>(new EmulatedDevice(std::move(ssd), path));
}

EmulatedDevice::EmulatedDevice(std::unique_ptr<ssd::Ssd> ssd, const std::string& path)
    : ssd_(std::move(ssd)) {
  const ssd::Geometry& geometry = ssd_->geometry();
  const bool maps_vstreams = geometry.ftl == ssd::FtlKind::kVStream;
  info_ = {"emulated",
           path,
           "emu:" + ssd_->uuid(),
           geometry.user_pages,
           maps_vstreams ? uint16_t{1} : geometry.streams,
           geometry.pages_per_block,
           geometry.plp,
           mechanism_of(geometry),
           why_no_streams(geometry),
           "memory",
           std::string(name_of(geometry.gc_mode)),
           static_cast<double>(geometry.physical_pages()) / geometry.user_pages - 1,
           std::string(name_of(geometry.victim)),
           geometry.map_unit_pages};
  info_.in_process = true;
  info_.maps_vstreams = maps_vstreams;
}

void EmulatedDevice::write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) {
  const PStreamId stream = ssd::stream_of(tag.placement.dtype, tag.placement.dspec);
  ssd::Acknowledgement acknowledged;
  Result<void> result = ssd_->write(first.value, bytes, tag.vstream, stream, &acknowledged);
  acknowledged.wait();
  done(std::move(result));
}

void EmulatedDevice::read(BlockNo first, Bytes bytes, Completion done) {
  ssd::Acknowledgement acknowledged;
  Result<void> result = ssd_->read(first.value, bytes, &acknowledged);
  acknowledged.wait();
  done(std::move(result));
}

Result<void> EmulatedDevice::flush() {
  ssd::Acknowledgement acknowledged;
  SFS_TRY(ssd_->flush(&acknowledged));
  acknowledged.wait();
  return {};
}

Result<DeviceStats> EmulatedDevice::stats() {
  return device_stats(ssd_->stats());
}

Placement EmulatedDevice::placement(PStreamId stream) const {
  if (stream == kDefaultPStream || stream.value >= info_.pstream_count) return {};
  return {ssd::kStreamsDirective, stream.value};
}

IdleCapabilities EmulatedDevice::capabilities() const {
  return {IdleMeans::kInCall, "garbage collection and wear levelling with a deadline"};
}

Pressure EmulatedDevice::pressure() {
  switch (ssd_->urgency()) {
    case ssd::Urgency::kNone:
      return Pressure::kNone;
    case ssd::Urgency::kLow:
      return Pressure::kLow;
    case ssd::Urgency::kHigh:
      return Pressure::kHigh;
    case ssd::Urgency::kCritical:
      return Pressure::kCritical;
  }
  return Pressure::kUnknown;
}

Result<IdleWork> EmulatedDevice::begin_idle(const IdleLimits& limits) {
  ssd::IdleLimits wanted;
  wanted.stop = limits.stop;
  wanted.valid_limit = limits.valid_limit;
  const ssd::IdleReport done = ssd_->run_idle(wanted);
  return IdleWork{done.end == ssd::IdleReport::End::kNothingLeft,
                  (done.gc_pages + done.wear_pages) * kBlockSize, done.erases};
}

Result<IdleWork> EmulatedDevice::prepare_poweroff(const IdleLimits& limits) {
  SFS_TRY(flush());
  return begin_idle(limits);
}

}  // namespace streamfs::blockdev
