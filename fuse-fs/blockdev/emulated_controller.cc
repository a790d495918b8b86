// EmulatedController: opening, the dispatch of commands, and admin commands other than directives.
#include "fuse-fs/blockdev/emulated_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/emulated_device.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/discovery.h"
#include "fuse-fs/nvme/status.h"
#include "fuse-fs/nvme/structures.h"
#include "ssd/geometry.h"
#include "ssd/ssd.h"
#include "ssd/stats.h"

namespace streamfs::blockdev {

using nvme::Command;
using nvme::CompletionEntry;
using nvme::Mechanism;
using nvme::Status;

namespace {

constexpr uint16_t kGroup = 1;  // the endurance group
constexpr uint32_t kVersion = 0x020100;

CompletionEntry completed(Status status) {
  return {static_cast<uint16_t>(status), 0};
}

template <size_t size>
void set_text(std::array<uint8_t, size>& field, std::string_view text) {
  field.fill(' ');
  std::copy_n(text.begin(), std::min(size, text.size()), field.begin());
}

uint8_t log2_of(uint32_t value) {
  uint8_t bits = 0;
  while (value >>= 1) ++bits;
  return bits;
}

// Returns the sixteen bytes of a uuid, given as text.
std::array<uint8_t, 16> bytes_of_uuid(const std::string& text) {
  std::array<uint8_t, 16> bytes{};
  size_t digits = 0;
  for (const char letter : text) {
    if (letter == '-' || digits == 32) continue;
    const int value = letter <= '9' ? letter - '0' : letter - 'a' + 10;
    bytes.at(digits / 2) = static_cast<uint8_t>(bytes.at(digits / 2) << 4 | value);
    ++digits;
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<EmulatedController>> EmulatedController::open(const std::string& path,
                                                                     const EmulatedNvme& kind,
                                                                     const OpenOptions& options) {
  SFS_ASSIGN(std::unique_ptr<ssd::Ssd> ssd, ssd::Ssd::open(path, ssd_options(options)));
  if (ssd->geometry().ftl == ssd::FtlKind::kEmmc)
    return Error{EINVAL, path + " is an eMMC and has no NVMe controller"};
  if (ssd->geometry().ftl == ssd::FtlKind::kVStream)
    return Error{EINVAL, path + " has a vStream-FTL, which no NVMe command reaches"};
  if (const ssd::FtlKind ftl = ssd->geometry().ftl; ssd::runs_on_nand(ftl))
    return Error{EINVAL, fmt::format("{} has the FTL {}, which has no streams, and no NVMe "
                                     "controller: use emu:{}",
                                     path, name_of(ftl), path)};
  return std::unique_ptr<EmulatedController>(new EmulatedController(std::move(ssd), path, kind));
}

EmulatedController::EmulatedController(std::unique_ptr<ssd::Ssd> ssd, const std::string& path,
                                       const EmulatedNvme& kind)
    : ssd_(std::move(ssd)), path_(path), kind_(kind), updated_at_(ssd_->geometry().streams) {}

void EmulatedController::answer(Bytes data, ConstBytes with, uint64_t offset) {
  std::ranges::fill(data, std::byte{0});
  if (offset >= with.size()) return;
  with = with.subspan(offset);
  std::copy_n(with.begin(), std::min(data.size(), with.size()), data.begin());
}

Result<uint32_t> EmulatedController::admin(const Command& command, Bytes data) {
  return nvme::outcome(do_admin(command, data), nvme::admin_name(command.opcode));
}

Result<uint32_t> EmulatedController::io(const Command& command, Bytes data) {
  return nvme::outcome(do_io(command, data), nvme::io_name(command.opcode));
}

void EmulatedController::start(const Command& command, Bytes data, nvme::Done done) {
  done(io(command, data));
}

void EmulatedController::reset() {
  non_operational_ = 0;
  const MutexLock lock(mutex_);
  disable_streams();
}

CompletionEntry EmulatedController::do_admin(const Command& command, Bytes data) {
  switch (command.opcode) {
    case nvme::opcode::kIdentify:
      return completed(identify(command, data));
    case nvme::opcode::kGetFeatures:
      return get_features(command);
    case nvme::opcode::kSetFeatures:
      return completed(set_features(command));
    case nvme::opcode::kGetLogPage:
      return completed(get_log_page(command, data));
    case nvme::opcode::kDirectiveReceive:
      return directive_receive(command, data);
    case nvme::opcode::kDirectiveSend:
      return completed(directive_send(command));
    default:
      return completed(Status::kInvalidOpcode);
  }
}

CompletionEntry EmulatedController::do_io(const Command& command, Bytes data) {
  if (command.nsid != nsid()) return completed(Status::kInvalidNamespace);
  switch (command.opcode) {
    case nvme::opcode::kWrite:
      return completed(write(command, data));
    case nvme::opcode::kRead:
      return completed(read(command, data));
    case nvme::opcode::kFlush:
      return completed(flush());
    case nvme::opcode::kDatasetManagement:
      return completed(deallocate(command, data));
    case nvme::opcode::kIoManagementReceive:
      return completed(ruh_status(data));
    case nvme::opcode::kIoManagementSend:
      return completed(ruh_update(command, data));
    default:
      return completed(Status::kInvalidOpcode);
  }
}

Status EmulatedController::identify(const Command& command, Bytes data) const {
  switch (command.cdw10() & 0xff) {
    case nvme::kCnsController:
      answer(data, nvme::encode(controller_identity()));
      return Status::kSuccess;
    case nvme::kCnsNamespace:
      if (command.nsid != nsid()) return Status::kInvalidNamespace;
      answer(data, nvme::encode(namespace_identity()));
      return Status::kSuccess;
    case nvme::kCnsCommandSetController:
      answer(data, nvme::encode(kind_.limits));
      return Status::kSuccess;
    default:
      return Status::kInvalidField;
  }
}

nvme::ControllerIdentity EmulatedController::controller_identity() const {
  using nvme::ControllerIdentity;
  ControllerIdentity id;
  set_text(id.serial, ssd_->uuid());
  set_text(id.model, "streamfs emulated SSD");
  set_text(id.firmware, "1");
  id.mdts = kind_.mdts;
  id.version = kVersion;
  id.ctratt = ControllerIdentity::kCtrattEnduranceGroups |
              (kind_.permissive ? ControllerIdentity::kCtrattPermissive : 0) |
              (has(Mechanism::kFdp) ? ControllerIdentity::kCtrattFdp : 0);
  id.oacs = has(Mechanism::kNone) ? 0 : ControllerIdentity::kOacsDirectives;
  id.oncs = ControllerIdentity::kOncsDatasetManagement;
  id.vwc = ssd_->geometry().plp ? 0 : 1;
  return id;
}

nvme::NamespaceIdentity EmulatedController::namespace_identity() const {
  using nvme::NamespaceIdentity;
  const ssd::Geometry& geometry = ssd_->geometry();
  NamespaceIdentity id;
  id.nsze = id.ncap = id.nuse = geometry.user_pages * lbas_per_page();
  id.nsfeat = NamespaceIdentity::kNsfeatOptimalIo;
  id.dps = kind_.protection;
  id.dlfeat = 1;  // zeroes
  const auto unit = static_cast<uint16_t>(geometry.map_unit_pages * lbas_per_page() - 1);
  id.npwg = id.npwa = id.npdg = id.npda = id.nows = unit;
  id.nsattr = kind_.write_protected ? NamespaceIdentity::kNsattrWriteProtected : 0;
  id.endgid = kGroup;
  id.nguid = bytes_of_uuid(ssd_->uuid());
  id.lbaf[0] = kind_.metadata_bytes | uint32_t{log2_of(kind_.lba_bytes)} << 16;
  return id;
}

CompletionEntry EmulatedController::get_features(const Command& command) const {
  if ((command.cdw10() & 0xff) == nvme::kFeatureNonOperational && kind_.permissive)
    return {0, non_operational_.load()};
  if ((command.cdw10() & 0xff) != nvme::kFeatureFdp || !has(Mechanism::kFdp) ||
      command.cdw11() != kGroup)
    return completed(Status::kInvalidField);
  return {0, kind_.fdp_enabled ? 1U : 0U};  // configuration 0
}

Status EmulatedController::set_features(const Command& command) {
  if ((command.cdw10() & 0xff) != nvme::kFeatureNonOperational || !kind_.permissive)
    return Status::kInvalidField;
  non_operational_ = command.cdw11() & nvme::kPermissive;
  return Status::kSuccess;
}

Status EmulatedController::get_log_page(const Command& command, Bytes data) {
  const auto page = static_cast<uint8_t>(command.cdw10());
  const uint32_t count = command.cdw10() >> 16 | command.cdw11() << 16;
  if ((uint64_t{count} + 1) * 4 != data.size()) return Status::kInvalidField;
  const bool of_fdp =
      page >= nvme::log_page::kFdpConfigurations && page <= nvme::log_page::kFdpStatistics;
  if (of_fdp && !has(Mechanism::kFdp)) return Status::kInvalidLogPage;
  const uint32_t group = command.cdw11() >> 16;
  if ((of_fdp || page == nvme::log_page::kEnduranceGroup) && group != kGroup)
    return Status::kInvalidField;
  if (of_fdp && page != nvme::log_page::kFdpConfigurations && !fdp_on())
    return Status::kFdpDisabled;
  const std::optional<std::vector<std::byte>> content = log_page(page);
  if (!content) return Status::kInvalidLogPage;
  answer(data, *content, command.cdw12() | uint64_t{command.cdw13()} << 32);
  return Status::kSuccess;
}

std::optional<std::vector<std::byte>> EmulatedController::log_page(uint8_t page) {
  switch (page) {
    case nvme::log_page::kSmart:
      return smart_log();
    case nvme::log_page::kEnduranceGroup:
      return endurance_log();
    case nvme::log_page::kFdpConfigurations:
      return fdp_configurations();
    case nvme::log_page::kFdpStatistics:
      return fdp_statistics();
    case nvme::log_page::kOcpSmart:
      if (kind_.ocp_log) return ocp_log();
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::vector<std::byte> EmulatedController::fdp_configurations() const {
  const ssd::Geometry& geometry = ssd_->geometry();
  const uint8_t type = geometry.gc_mode == ssd::GcMode::kShared ? 1 : 2;
  const nvme::FdpConfiguration one{0x80,
                                   1,
                                   geometry.streams,
                                   1,
                                   geometry.pages_per_block * kBlockSize,
                                   0,
                                   std::vector<uint8_t>(geometry.streams, type)};
  return nvme::encode_fdp_configurations({&one, 1});
}

std::vector<std::byte> EmulatedController::fdp_statistics() {
  const ssd::SsdStats stats = ssd_->stats();
  return nvme::encode(
      nvme::FdpStatistics{{stats.written_bytes},
                          {stats.nand_bytes},
                          {stats.erases * ssd_->geometry().pages_per_block * kBlockSize}});
}

std::vector<std::byte> EmulatedController::smart_log() {
  const ssd::SsdStats stats = ssd_->stats();
  nvme::SmartLog log;
  log.available_spare = 100;
  log.data_units_read.value = div_round_up(stats.read_bytes, nvme::SmartLog::kUnitBytes);
  log.data_units_written.value = div_round_up(stats.written_bytes, nvme::SmartLog::kUnitBytes);
  log.media_errors.value = stats.media_errors;
  return nvme::encode(log);
}

std::vector<std::byte> EmulatedController::ocp_log() {
  nvme::OcpSmartLog log;
  log.physical_written.value = ssd_->stats().nand_bytes;
  log.guid = nvme::OcpSmartLog::kGuid;
  return nvme::encode(log);
}

std::vector<std::byte> EmulatedController::endurance_log() {
  const ssd::SsdStats stats = ssd_->stats();
  constexpr uint64_t kUnit = nvme::EnduranceGroupLog::kUnitBytes;
  return nvme::encode(nvme::EnduranceGroupLog{{div_round_up(stats.written_bytes, kUnit)},
                                              {div_round_up(stats.nand_bytes, kUnit)}});
}

}  // namespace streamfs::blockdev
