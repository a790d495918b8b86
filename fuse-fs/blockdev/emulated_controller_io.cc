// EmulatedController: directives, placements and the I/O commands.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/emulated_controller.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/discovery.h"
#include "fuse-fs/nvme/status.h"
#include "fuse-fs/nvme/structures.h"
#include "ssd/geometry.h"
#include "ssd/real_time.h"
#include "ssd/ssd.h"
#include "ssd/stats.h"

namespace streamfs::blockdev {

using nvme::Command;
using nvme::CompletionEntry;
using nvme::Mechanism;
using nvme::Status;

namespace {

Status status_of(const Result<void>& done, Status otherwise) {
  if (done.ok()) return Status::kSuccess;
  switch (done.error().code) {
    case EROFS:
      return Status::kWriteProtected;
    case ENOSPC:
      return Status::kCapacityExceeded;
    case EINVAL:
      return Status::kBeyondCapacity;
    default:
      return otherwise;
  }
}

bool exceeds(const std::vector<nvme::Range>& ranges, const nvme::CommandSetLimits& limits) {
  const auto above = [](uint64_t value, uint64_t most) { return most != 0 && value > most; };
  uint64_t lbas = 0;
  for (const nvme::Range& range : ranges) {
    if (above(range.lbas, limits.dmrsl)) return true;
    lbas += range.lbas;
  }
  return above(ranges.size(), limits.dmrl) || above(lbas, limits.dmsl);
}

}  // namespace

// Returns the number of streams without the default one, which takes writes without a stream.
uint16_t EmulatedController::max_streams() const {
  return static_cast<uint16_t>(ssd_->geometry().streams - 1);
}

void EmulatedController::disable_streams() {
  streams_enabled_ = false;
  allocated_ = 0;
  open_.clear();
}

std::vector<std::byte> EmulatedController::directive_parameters() const {
  nvme::DirectiveParameters parameters;
  parameters.supported = parameters.enabled = 1;  // Identify
  if (has(Mechanism::kStreams)) parameters.supported |= 1 << nvme::directive::kStreams;
  if (has(Mechanism::kFdp)) parameters.supported |= 1 << nvme::directive::kPlacement;
  if (streams_enabled_) parameters.enabled |= 1 << nvme::directive::kStreams;
  if (fdp_on()) parameters.enabled |= 1 << nvme::directive::kPlacement;
  return nvme::encode(parameters);
}

nvme::StreamsParameters EmulatedController::streams_parameters() const {
  nvme::StreamsParameters parameters;
  const auto open = static_cast<uint16_t>(open_.size());
  parameters.msl = max_streams();
  parameters.nssa =
      static_cast<uint16_t>(max_streams() - allocated_ -
                            std::min<int>(kind_.streams_of_others, max_streams() - allocated_));
  parameters.nsso = open;
  parameters.sws = static_cast<uint32_t>(ssd_->geometry().wordline_pages * lbas_per_page());
  parameters.sgs =
      static_cast<uint16_t>(ssd_->geometry().pages_per_block / ssd_->geometry().wordline_pages);
  parameters.nsa = allocated_;
  parameters.nso = open;
  return parameters;
}

CompletionEntry EmulatedController::allocate(uint32_t wanted) {
  const uint16_t free = streams_parameters().nssa;
  if (allocated_ != 0) return {static_cast<uint16_t>(Status::kInvalidField), 0};
  if (free == 0) return {static_cast<uint16_t>(Status::kStreamAllocationFailed), 0};
  allocated_ = static_cast<uint16_t>(std::min<uint32_t>(wanted, free));
  return {0, allocated_};
}

CompletionEntry EmulatedController::directive_receive(const Command& command, Bytes data) {
  const auto invalid = static_cast<uint16_t>(Status::kInvalidField);
  const uint32_t operation = command.cdw11() & 0xff, type = command.cdw11() >> 8 & 0xff;
  const MutexLock lock(mutex_);
  if (has(Mechanism::kNone)) return {static_cast<uint16_t>(Status::kInvalidOpcode), 0};
  if (type == nvme::directive::kIdentify && operation == nvme::directive::kReturnParameters) {
    answer(data, directive_parameters());
    return {};
  }
  if (type != nvme::directive::kStreams || !streams_enabled_) return {invalid, 0};
  switch (operation) {
    case nvme::directive::kReturnParameters:
      answer(data, nvme::encode(streams_parameters()));
      return {};
    case nvme::directive::kGetStatus: {
      std::vector<uint16_t> ids;
      for (const Stream& stream : open_) ids.push_back(stream.id);
      answer(data, nvme::encode_stream_status(ids));
      return {};
    }
    case nvme::directive::kAllocateResources:
      return allocate(command.cdw12() & 0xffff);
    default:
      return {invalid, 0};
  }
}

Status EmulatedController::directive_send(const Command& command) {
  const uint32_t operation = command.cdw11() & 0xff, type = command.cdw11() >> 8 & 0xff;
  const uint32_t id = command.cdw11() >> 16;
  const MutexLock lock(mutex_);
  if (has(Mechanism::kNone)) return Status::kInvalidOpcode;
  if (type == nvme::directive::kIdentify && operation == nvme::directive::kEnable) {
    const uint32_t target = command.cdw12() >> 8 & 0xff;
    if (target != nvme::directive::kStreams || !has(Mechanism::kStreams))
      return Status::kInvalidField;
    if ((command.cdw12() & 1) == 0)
      disable_streams();
    else
      streams_enabled_ = true;
    return Status::kSuccess;
  }
  if (type != nvme::directive::kStreams || !streams_enabled_) return Status::kInvalidField;
  if (operation == nvme::directive::kReleaseId) {
    return release(static_cast<uint16_t>(id));
  } else if (operation == nvme::directive::kReleaseResources) {
    allocated_ = 0;
    open_.clear();
  } else {
    return Status::kInvalidField;
  }
  return Status::kSuccess;
}

Status EmulatedController::release(uint16_t id) {
  const auto stream = std::ranges::find(open_, id, &Stream::id);
  if (stream == open_.end()) return Status::kSuccess;
  const Result<void> sealed = ssd_->release(PStreamId{stream->slot});
  open_.erase(stream);
  return sealed.ok() ? Status::kSuccess : Status::kInternalError;
}

// Returns the slot of a stream, and opens the stream if need be. A namespace without resources of
// its own may use resources that are not allocated to any.
uint16_t EmulatedController::slot_of(uint16_t id) {
  const auto known = std::ranges::find(open_, id, &Stream::id);
  if (known != open_.end()) return known->slot;
  const nvme::StreamsParameters parameters = streams_parameters();
  const uint16_t most = allocated_ != 0 ? allocated_ : parameters.nssa;
  if (most == 0) return 0;
  if (open_.size() >= most) open_.pop_front();
  uint16_t slot = 1;
  while (std::ranges::find(open_, slot, &Stream::slot) != open_.end()) ++slot;
  open_.push_back({id, slot});
  return slot;
}

Status EmulatedController::place(const nvme::Transfer& transfer, PStreamId& stream) {
  stream = kDefaultPStream;
  if (transfer.directive_type == nvme::directive::kIdentify) return Status::kSuccess;
  const MutexLock lock(mutex_);
  if (transfer.directive_type == nvme::directive::kStreams && streams_enabled_) {
    if (transfer.specific != 0) stream = PStreamId{slot_of(transfer.specific)};
    return Status::kSuccess;
  }
  if (transfer.directive_type != nvme::directive::kPlacement || !fdp_on())
    return Status::kInvalidField;
  stream = PStreamId{transfer.specific};  // the SSD counts an unknown one, and takes the first
  return Status::kSuccess;
}

bool EmulatedController::covers_pages(uint64_t first_lba, uint64_t lbas) const {
  return first_lba % lbas_per_page() == 0 && lbas % lbas_per_page() == 0;
}

Status EmulatedController::write(const Command& command, Bytes data) {
  const nvme::Transfer t = nvme::transfer_of(command);
  if (data.size() != uint64_t{t.lbas} * kind_.lba_bytes || !covers_pages(t.first_lba, t.lbas) ||
      data.size() > controller_identity().max_transfer_bytes())
    return Status::kInvalidField;
  if (kind_.write_protected) return Status::kWriteProtected;
  PStreamId stream;
  if (const Status refused = place(t, stream); refused != Status::kSuccess) return refused;
  ssd::Acknowledgement acknowledged;
  const Result<void> done =
      ssd_->write(t.first_lba / lbas_per_page(), data, VStreamId{}, stream, &acknowledged);
  acknowledged.wait();
  return status_of(done, Status::kWriteFault);
}

Status EmulatedController::read(const Command& command, Bytes data) {
  const nvme::Transfer t = nvme::transfer_of(command);
  if (data.size() != uint64_t{t.lbas} * kind_.lba_bytes || !covers_pages(t.first_lba, t.lbas) ||
      data.size() > controller_identity().max_transfer_bytes())
    return Status::kInvalidField;
  ssd::Acknowledgement acknowledged;
  const Result<void> done = ssd_->read(t.first_lba / lbas_per_page(), data, &acknowledged);
  acknowledged.wait();
  return status_of(done, Status::kUnrecoveredRead);
}

Status EmulatedController::flush() {
  ssd::Acknowledgement acknowledged;
  const Result<void> done = ssd_->flush(&acknowledged);
  acknowledged.wait();
  return status_of(done, Status::kInternalError);
}

// Deallocates the whole pages of each range. Parts of pages stay, as a controller may choose.
Status EmulatedController::deallocate(const Command& command, Bytes data) {
  const size_t count = (command.cdw10() & 0xff) + 1;
  if (data.size() < count * nvme::Range::kBytes) return Status::kInvalidField;
  constexpr uint32_t kDeallocate = 1 << 2;
  if ((command.cdw11() & kDeallocate) == 0) return Status::kSuccess;
  if (kind_.write_protected) return Status::kWriteProtected;
  const auto ranges = nvme::decode_ranges(data.first(count * nvme::Range::kBytes));
  if (exceeds(ranges, kind_.limits)) return Status::kSizeLimitExceeded;
  for (const nvme::Range& range : ranges) {
    const uint64_t first = div_round_up(range.first_lba, lbas_per_page());
    const uint64_t end = (range.first_lba + range.lbas) / lbas_per_page();
    if (end <= first) continue;
    const Status status = status_of(ssd_->trim(first, end - first), Status::kInternalError);
    if (status != Status::kSuccess) return status;
  }
  return Status::kSuccess;
}

// Returns the LBAs that went into the open blocks of each handle.
std::vector<uint64_t> EmulatedController::written_lbas() {
  const bool mixed = ssd_->geometry().gc_mode == ssd::GcMode::kSameStream;
  std::vector<uint64_t> lbas;
  for (const ssd::StreamUse& use : ssd_->stats().streams)
    lbas.push_back((use.written_bytes + (mixed ? use.gc_bytes : 0)) / kind_.lba_bytes);
  return lbas;
}

std::vector<nvme::RuhStatus> EmulatedController::handles() {
  const std::vector<uint64_t> lbas = written_lbas();
  std::vector<nvme::RuhStatus> all;
  for (uint16_t h = 0; h < ssd_->geometry().streams; ++h) {
    const uint64_t since = lbas[h] - std::min(lbas[h], updated_at_[h]);
    all.push_back({h, h, 0, unit_lbas() - since % unit_lbas()});
  }
  return all;
}

Status EmulatedController::ruh_status(Bytes data) {
  if (!fdp_on()) return Status::kFdpDisabled;
  const MutexLock lock(mutex_);
  answer(data, nvme::encode_ruh_status(handles()));
  return Status::kSuccess;
}

Status EmulatedController::ruh_update(const Command& command, Bytes data) {
  if (!fdp_on()) return Status::kFdpDisabled;
  const size_t count = (command.cdw10() >> 16) + 1;
  if ((command.cdw10() & 0xff) != nvme::kManageRuhs || data.size() < 2 * count)
    return Status::kInvalidField;
  const std::vector<uint16_t> placements = nvme::decode_placements(data.first(2 * count));
  const auto unknown = [&](uint16_t each) { return each >= ssd_->geometry().streams; };
  if (std::ranges::any_of(placements, unknown)) return Status::kInvalidField;
  const MutexLock lock(mutex_);
  const std::vector<uint64_t> lbas = written_lbas();
  for (const uint16_t each : placements) {
    if (const auto closed = ssd_->release(PStreamId{each}); !closed.ok())
      return Status::kInternalError;
    updated_at_[each] = lbas[each];
  }
  return Status::kSuccess;
}

}  // namespace streamfs::blockdev
