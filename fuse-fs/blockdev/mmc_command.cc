#include "fuse-fs/blockdev/mmc_command.h"

#include <linux/mmc/ioctl.h>

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace streamfs::blockdev::mmc {
namespace {

// From include/linux/mmc/core.h. They are part of the ioctl's interface, but in no uapi header.
constexpr unsigned kPresent = 1 << 0, kCrc = 1 << 2, kBusy = 1 << 3, kOpcode = 1 << 4;
constexpr unsigned kSpiStatus = 1 << 7, kSpiBusy = 1 << 10;
constexpr unsigned kCommandAc = 0 << 5, kCommandAdtc = 1 << 5;
constexpr unsigned kR1 = kPresent | kCrc | kOpcode, kR1b = kR1 | kBusy;
constexpr unsigned kSpiR1 = kSpiStatus, kSpiR1b = kSpiStatus | kSpiBusy;

constexpr uint32_t kSwitch = 6, kSendExtCsd = 8, kStopTransmission = 12, kSendStatus = 13;
constexpr uint32_t kSetBlockCount = 23, kWriteMultipleBlock = 25;
constexpr uint32_t kWriteByte = 3;  // CMD6: access mode

// Bytes of EXT_CSD.
constexpr size_t kContextConf = 37;  // of context 1
constexpr size_t kHpiManagement = 161, kBkopsEnable = 163, kBkopsStart = 164;
constexpr size_t kOutOfInterruptTime = 198, kBkopsStatus = 246;
constexpr size_t kContextCapabilities = 496, kBkopsSupport = 502, kHpiFeatures = 503;
constexpr uint8_t kClosed = 0, kWriteOnly = 1;  // CONTEXT_CONF: activation and direction
constexpr unsigned kContextShift = 25;          // in the argument of CMD23

constexpr uint32_t kReadyForData = 1 << 8, kStateShift = 9, kStateMask = 0xf, kTransfer = 4;
// The error bits of the card's status, from ADDRESS_OUT_OF_RANGE to ERROR, and SWITCH_ERROR.
constexpr uint32_t kErrorBits = 0xfdf8'0080;

mmc_ioc_cmd write_byte(size_t index, uint8_t value) {
  mmc_ioc_cmd command{};
  command.write_flag = 1;
  command.opcode = kSwitch;
  command.arg = kWriteByte << 24 | static_cast<uint32_t>(index) << 16 | uint32_t{value} << 8;
  command.flags = kSpiR1b | kR1b | kCommandAc;
  return command;
}

Hpi hpi_of(const ExtCsd& ext_csd) {
  const bool on = (ext_csd[kHpiFeatures] & 1) != 0 && (ext_csd[kHpiManagement] & 1) != 0;
  if (!on) return Hpi::kNone;
  return (ext_csd[kHpiFeatures] & 2) != 0 ? Hpi::kByStop : Hpi::kByStatus;
}

}  // namespace

BackgroundOperations background_operations(const ExtCsd& ext_csd) {
  constexpr uint32_t kUnitMs = 10;
  return {.supported = (ext_csd[kBkopsSupport] & 1) != 0,
          .manual = (ext_csd[kBkopsEnable] & 1) != 0,
          .automatic = (ext_csd[kBkopsEnable] & 2) != 0,
          .hpi = hpi_of(ext_csd),
          .status = static_cast<uint8_t>(ext_csd[kBkopsStatus] & 3),
          .hpi_ms = ext_csd[kOutOfInterruptTime] * kUnitMs};
}

mmc_ioc_cmd read_ext_csd(ExtCsd& into) {
  mmc_ioc_cmd command{};
  command.opcode = kSendExtCsd;
  command.flags = kSpiR1 | kR1 | kCommandAdtc;
  command.blksz = kExtCsdBytes;
  command.blocks = 1;
  command.data_ptr = reinterpret_cast<uintptr_t>(into.data());
  return command;
}

mmc_ioc_cmd start_background_operations() {
  mmc_ioc_cmd command{};
  command.write_flag = 1;
  command.opcode = kSwitch;
  command.arg = kWriteByte << 24 | uint32_t{kBkopsStart} << 16 | 1u << 8;
  command.flags = kSpiR1 | kR1 | kCommandAc;
  return command;
}

mmc_ioc_cmd interrupt(Hpi hpi, uint16_t card) {
  const bool by_stop = hpi == Hpi::kByStop;
  mmc_ioc_cmd command{};
  command.opcode = by_stop ? kStopTransmission : kSendStatus;
  command.arg = uint32_t{card} << 16 | 1;
  command.flags = (by_stop ? kSpiR1b | kR1b : kSpiR1 | kR1) | kCommandAc;
  return command;
}

mmc_ioc_cmd read_status(uint16_t card) {
  mmc_ioc_cmd command{};
  command.opcode = kSendStatus;
  command.arg = uint32_t{card} << 16;
  command.flags = kSpiR1 | kR1 | kCommandAc;
  return command;
}

uint8_t contexts_of(const ExtCsd& ext_csd) {
  return ext_csd[kContextCapabilities] & 0xf;
}

mmc_ioc_cmd open_context(uint8_t context) {
  return write_byte(kContextConf + context - 1, kWriteOnly);
}

mmc_ioc_cmd close_context(uint8_t context) {
  return write_byte(kContextConf + context - 1, kClosed);
}

mmc_ioc_cmd set_block_count(uint16_t sectors, uint8_t context) {
  mmc_ioc_cmd command{};
  command.opcode = kSetBlockCount;
  command.arg = sectors | uint32_t{context} << kContextShift;
  command.flags = kSpiR1 | kR1 | kCommandAc;
  return command;
}

mmc_ioc_cmd write_sectors(uint32_t first, ConstBytes bytes) {
  mmc_ioc_cmd command{};
  command.write_flag = 1;
  command.opcode = kWriteMultipleBlock;
  command.arg = first;
  command.flags = kSpiR1 | kR1 | kCommandAdtc;
  command.blksz = kSectorBytes;
  command.blocks = static_cast<unsigned>(bytes.size() / kSectorBytes);
  command.data_ptr = reinterpret_cast<uintptr_t>(bytes.data());
  return command;
}

bool is_error(const mmc_ioc_cmd& answered) {
  return (answered.response[0] & kErrorBits) != 0;
}

bool is_ready(const mmc_ioc_cmd& answered) {
  const uint32_t status = answered.response[0];
  return (status & kReadyForData) != 0 && (status >> kStateShift & kStateMask) == kTransfer;
}

}  // namespace streamfs::blockdev::mmc
