// Ssd: reads, writes, trims and flushes of the host.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "ssd/counters.h"
#include "ssd/geometry.h"
#include "ssd/latency.h"
#include "ssd/media/image_media.h"
#include "ssd/real_time.h"
#include "ssd/ssd.h"

namespace streamfs::ssd {

Result<void> Ssd::check_range(uint64_t page, uint64_t count) const {
  if (page < geometry_.user_pages && count <= geometry_.user_pages - page) return {};
  return Error{EINVAL, fmt::format("pages {} + {} lie beyond the device's {}", page, count,
                                   geometry_.user_pages)};
}

void Ssd::acknowledge(Acknowledgement* acknowledged, uint64_t ns) const {
  if (real_time_.on() && acknowledged != nullptr) acknowledged->not_before(real_time_.at(ns));
}

Result<void> Ssd::write(uint64_t page, ConstBytes bytes, VStreamId vstream, PStreamId pstream,
                        Acknowledgement* acknowledged) {
  SFS_ASSERT(bytes.size() % kPageBytes == 0);
  const uint64_t pages = bytes.size() / kPageBytes;
  SFS_TRY(check_range(page, pages));
  if (read_only_) return Error{EROFS, "the emulated SSD is open for reading"};
  const bool known = !streams_off_ && pstream.value < geometry_.streams;
  const auto stream = static_cast<uint16_t>(known ? pstream.value : 0);
  if (streams_off_) vstream = kDefaultVStream;
  const uint64_t arrived_ns = real_time_.now_ns();
  const WriteLock lock(ftl_mutex_);
  const Change change(*this);
  if (!streams_off_ && !known) ++counters().unknown_placements;
  if (real_time_.on()) latency_.wall_arrives(arrived_ns, static_cast<uint32_t>(pages));
  latency_.begin_write(static_cast<uint32_t>(pages));
  const int error = write_units(page, bytes, vstream, stream);
  latency_.end_write();
  acknowledge(acknowledged, latency_.wall_accepted_ns());
  if (error == kDataDamaged) return read_error(error, page, static_cast<uint32_t>(pages));
  return powered(error != 0 ? Result<void>(Error{error, "emulated SSD: write"}) : Result<void>());
}

int Ssd::write_units(uint64_t page, ConstBytes bytes, VStreamId vstream, uint16_t stream) {
  const uint64_t unit = geometry_.map_unit_pages;
  while (!bytes.empty()) {
    const uint64_t within = page % unit;
    uint64_t pages = bytes.size() / kPageBytes;
    int error = 0;
    if (within == 0 && pages >= unit) {
      pages = round_down(pages, unit);
      error = firmware_->write(static_cast<Lpn>(page / unit), static_cast<uint32_t>(pages / unit),
                               stream, vstream.value, bytes.data());
    } else {
      pages = std::min(pages, unit - within);
      error = write_part(page, bytes.first(pages * kPageBytes), vstream, stream);
    }
    if (error != 0) return error;
    page += pages;
    bytes = bytes.subspan(pages * kPageBytes);
  }
  return 0;
}

// Writes pages of one map unit. The unit's other pages are read and programmed again with them.
int Ssd::write_part(uint64_t page, ConstBytes bytes, VStreamId vstream, uint16_t stream) {
  const uint32_t unit = geometry_.map_unit_pages;
  const auto target = static_cast<Lpn>(page / unit);
  const uint64_t others = unit - bytes.size() / kPageBytes;
  Counters& count = counters();
  if (const Ppn at = place_of(uint64_t{target} * unit); at == kNoPage) {
    std::memset(unit_buffer_.data(), 0, unit_buffer_.size());
  } else {
    if (const int error = firmware_->read(at, unit_buffer_.data(), unit)) return error;
    latency_.read_for_write(at, unit);
    count.rmw_reads += others;
  }
  std::memcpy(unit_buffer_.data() + page % unit * kPageBytes, bytes.data(), bytes.size());
  const int error = firmware_->write(target, 1, stream, vstream.value, unit_buffer_.data());
  if (error != 0) return error;
  count.host_pages -= others;
  count.streams[stream].host_pages -= others;
  count.rmw_pages += others;
  return 0;
}

Ppn Ssd::place_of(uint64_t page) const {
  const uint32_t unit = geometry_.map_unit_pages;
  const Ppn at = firmware_->location(static_cast<Lpn>(page / unit));
  return at == kNoPage ? kNoPage : static_cast<Ppn>(at * unit + page % unit);
}

// Returns how many pages from this one on, up to `most`, are adjacent on the flash, or have no
// place.
uint32_t Ssd::run_at(uint64_t page, uint64_t most) const {
  const Ppn at = place_of(page);
  uint32_t run = 1;
  for (; run < most; ++run) {
    const Ppn next = place_of(page + run);
    if (at == kNoPage ? next != kNoPage : next != at + run) break;
  }
  return run;
}

// Counts damage of the medium, and returns the host's error.
Error Ssd::read_error(int error, uint64_t page, uint32_t pages) {
  if (error != kDataDamaged) return {error, "emulated SSD: read"};
  const MutexLock reading(reading_mutex_);
  ++counters().media_errors;
  return {EIO, fmt::format("emulated SSD: {} page(s) from {} on: data does not fit its checksum",
                           pages, page)};
}

Result<void> Ssd::read(uint64_t page, Bytes bytes, Acknowledgement* acknowledged) {
  SFS_ASSERT(bytes.size() % kPageBytes == 0);
  const uint64_t pages = bytes.size() / kPageBytes;
  SFS_TRY(check_range(page, pages));
  const uint64_t arrived_ns = real_time_.now_ns();
  const ReadLock lock(ftl_mutex_);
  std::optional<LatencyModel::Read> latency;
  uint32_t run = 0;
  for (uint64_t i = 0; i < pages; i += run) {
    const Ppn at = place_of(page + i);
    run = run_at(page + i, pages - i);
    const Bytes part = bytes.subspan(i * kPageBytes, run * kPageBytes);
    if (at == kNoPage) {
      std::memset(part.data(), 0, part.size());
      continue;
    }
    if (const int error = firmware_->read(at, part.data(), run))
      return read_error(error, page + i, run);
    const MutexLock reading(reading_mutex_);
    if (!latency && real_time_.on())
      latency_.wall_arrives(arrived_ns, static_cast<uint32_t>(pages));
    if (!latency) latency = latency_.begin_read(static_cast<uint32_t>(pages));
    latency_.host_read(*latency, at, run);
  }
  const MutexLock reading(reading_mutex_);
  if (latency) {
    latency_.end_read(*latency);
    acknowledge(acknowledged, latency_.wall_read_ns(*latency));
  }
  counters().read_pages += pages;
  return {};
}

Result<void> Ssd::trim(uint64_t page, uint64_t count) {
  SFS_TRY(check_range(page, count));
  if (read_only_) return Error{EROFS, "the emulated SSD is open for reading"};
  const uint64_t unit = geometry_.map_unit_pages;
  const WriteLock lock(ftl_mutex_);
  const Change change(*this);
  for (uint64_t i = div_round_up(page, unit); i < (page + count) / unit; ++i) {
    const auto lpn = static_cast<Lpn>(i);
    if (firmware_->location(lpn) != kNoPage) firmware_->trim(lpn);
  }
  return powered({});
}

Result<void> Ssd::release(PStreamId pstream) {
  if (read_only_ || pstream.value >= geometry_.streams) return {};
  const WriteLock lock(ftl_mutex_);
  const Change change(*this);
  firmware_->release(static_cast<uint16_t>(pstream.value));
  return powered({});
}

Result<void> Ssd::flush(Acknowledgement* acknowledged) {
  if (read_only_) return {};
  const uint64_t arrived_ns = real_time_.now_ns();
  const WriteLock lock(ftl_mutex_);
  const Change change(*this);
  ++counters().flushes;
  if (real_time_.on()) latency_.wall_arrives(arrived_ns, 0);
  const int error = firmware_->flush();
  acknowledge(acknowledged,
              geometry_.plp ? latency_.wall_accepted_ns() : latency_.wall_drained_ns());
  return powered(error != 0 ? Result<void>(Error{error, "emulated SSD: flush"}) : Result<void>());
}

}  // namespace streamfs::ssd
