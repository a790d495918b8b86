#include "ssd/emmc_card.h"

#include <fmt/format.h>
#include <linux/mmc/ioctl.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "ssd/ftl/emmc/firmware.h"
#include "ssd/ftl/emmc/interface.h"
#include "ssd/ftl/firmware.h"
#include "ssd/geometry.h"
#include "ssd/real_time.h"
#include "ssd/ssd.h"

namespace streamfs::ssd {
namespace {

// JESD84-B51: the card's status in R1.
constexpr uint32_t kAddressOutOfRange = 1u << 31, kAddressMisaligned = 1u << 30;
constexpr uint32_t kBlockLengthError = 1u << 29, kError = 1u << 19, kSwitchError = 1u << 7;
constexpr uint32_t kTransferState = 4u << 9 | 1u << 8;  // READY_FOR_DATA
// EXT_CSD: CONTEXT_CONF [51:37], of which bit 0 is the direction "write"; CONTEXT_CAPABILITIES.
constexpr uint32_t kExtCsdBytes = 512, kContextConf = 37, kContextCapabilities = 496;
constexpr uint8_t kWriteDirection = 1;
constexpr uint32_t kSectorBytes = 512;

template <typename With>
auto with_firmware(Ssd& ssd, const With& with) {
  return ssd.with_firmware(
      [&](Firmware& firmware) { return with(static_cast<emmc::EmmcFirmware&>(firmware)); });
}

}  // namespace

Result<std::unique_ptr<EmmcCard>> EmmcCard::open(const std::string& path,
                                                 const SsdOptions& options) {
  SFS_ASSIGN(std::unique_ptr<Ssd> ssd, Ssd::open(path, options));
  if (const FtlKind ftl = ssd->geometry().ftl; ftl != FtlKind::kEmmc)
    return Error{EINVAL,
                 fmt::format("{}: an image of the FTL {}, not of an eMMC", path, name_of(ftl))};
  auto card = std::make_unique<EmmcCard>(*ssd);
  card->owned_ = std::move(ssd);
  return card;
}

int EmmcCard::execute(std::span<mmc_ioc_cmd> sequence) {
  for (mmc_ioc_cmd& command : sequence)
    if (const int error = execute(command); error != 0) return error;
  return 0;
}

int EmmcCard::execute(mmc_ioc_cmd& command) {
  uint32_t errors = 0;
  int failed = 0;
  switch (command.opcode) {
    case 6: {  // SWITCH: access 25:24, index 23:16, value 15:8
      const auto index = static_cast<uint8_t>(command.arg >> 16);
      const bool byte = (command.arg >> 24 & 3) == 3;
      if (!byte || !write_ext_csd(index, static_cast<uint8_t>(command.arg >> 8)).ok())
        errors = kSwitchError;
      break;
    }
    case 8:  // SEND_EXT_CSD
      read_all_ext_csd(std::bit_cast<std::byte*>(uintptr_t{command.data_ptr}));
      break;
    case 13:  // SEND_STATUS
      break;
    case 23:  // SET_BLOCK_COUNT
      block_count_ = command.arg;
      break;
    case 25:  // WRITE_MULTIPLE_BLOCK
      errors = write_sectors(command, failed);
      block_count_ = 0;
      break;
    default:
      return ETIMEDOUT;
  }
  command.response[0] = kTransferState | errors;
  return failed;
}

// Returns the error bits of the answer. `error`: EIO once the power is gone.
uint32_t EmmcCard::write_sectors(const mmc_ioc_cmd& command, int& error) {
  const uint8_t context = emmc::context_id_of(block_count_);
  if (command.blksz != kSectorBytes) return kBlockLengthError;
  if ((block_count_ & 0xffff) != command.blocks || command.blocks == 0) return kError;
  if (context != 0 && (contexts_.at(context) & kWriteDirection) == 0) return kError;
  const uint64_t bytes = uint64_t{command.blocks} * kSectorBytes;
  const uint64_t from = uint64_t{command.arg} * kSectorBytes;
  if (from % kPageBytes != 0 || bytes % kPageBytes != 0) return kAddressMisaligned;
  const auto* data = std::bit_cast<const std::byte*>(uintptr_t{command.data_ptr});
  const auto done = write(block_count_, from / kPageBytes, {data, bytes});
  if (done.ok()) return 0;
  if (done.error().code == EINVAL) return kAddressOutOfRange;
  error = done.error().code == EIO ? EIO : 0;
  return kError;
}

void EmmcCard::read_all_ext_csd(std::byte* into) {
  for (uint32_t i = 0; i < kExtCsdBytes; ++i) {
    uint8_t value = i <= UINT8_MAX ? read_ext_csd(static_cast<uint8_t>(i)) : 0;
    if (i == kContextCapabilities) value = emmc::kStreams;
    into[i] = std::byte{value};
  }
}

Result<void> EmmcCard::write(uint32_t cmd23, uint64_t page, ConstBytes bytes) {
  const PStreamId stream{emmc::context_id_of(cmd23)};
  Acknowledgement acknowledged;
  Result<void> done = ssd_.write(page, bytes, VStreamId{stream.value}, stream, &acknowledged);
  acknowledged.wait();
  return done;
}

Result<void> EmmcCard::write_ext_csd(uint8_t index, uint8_t value) {
  if (index >= kContextConf && index < kContextConf + emmc::kStreams) {
    contexts_.at(index - kContextConf + 1) = value;
    return {};
  }
  if (index != emmc::kExtCsdStreams || value > 1)
    return Error{EINVAL, fmt::format("EXT_CSD[{}] cannot be {}", index, value)};
  with_firmware(ssd_, [&](emmc::EmmcFirmware& card) { card.set_streams(value == 1); });
  return {};
}

uint8_t EmmcCard::read_ext_csd(uint8_t index) {
  if (index >= kContextConf && index < kContextConf + emmc::kStreams)
    return contexts_.at(index - kContextConf + 1);
  if (index != emmc::kExtCsdStreams) return 0;
  const bool on =
      with_firmware(ssd_, [](const emmc::EmmcFirmware& card) { return card.streams_enabled(); });
  return on ? 1 : 0;
}

bool EmmcCard::streams_on() {
  return with_firmware(ssd_, [](const emmc::EmmcFirmware& card) { return card.streams_on(); });
}

uint32_t EmmcCard::blocks_read() {
  return with_firmware(ssd_, [](const emmc::EmmcFirmware& card) { return card.blocks_read(); });
}

}  // namespace streamfs::ssd
