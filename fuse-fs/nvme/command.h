// Encodes the NVMe commands that streamfs sends.
//
// Documents: NVM Express Base 2.0 (Identify, Get Log Page, Get Features, Directive Send and
// Receive, "Directives"), NVM Command Set 1.0 (Read, Write, Dataset Management), TP4146 "Flexible
// Data Placement", which is part of Base 2.1 (I/O Management Receive and Send, the FDP log pages).
// Fields that a document defines as 0's based take the real count here.
// Thread safety: values and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace streamfs::nvme {

// A submission queue entry without the identifier and the pointers, which the transport fills in.
struct Command {
  uint8_t opcode = 0;
  uint32_t nsid = 0;
  std::array<uint32_t, 6> cdw{};  // CDW10 to CDW15

  uint32_t cdw10() const { return cdw[0]; }
  uint32_t cdw11() const { return cdw[1]; }
  uint32_t cdw12() const { return cdw[2]; }
  uint32_t cdw13() const { return cdw[3]; }
  friend bool operator==(const Command&, const Command&) = default;
};

namespace opcode {
inline constexpr uint8_t kFlush = 0x00, kWrite = 0x01, kRead = 0x02, kDatasetManagement = 0x09,
                         kIoManagementReceive = 0x12, kIoManagementSend = 0x1d;  // I/O
inline constexpr uint8_t kGetLogPage = 0x02, kIdentify = 0x06, kSetFeatures = 0x09,
                         kGetFeatures = 0x0a, kDirectiveSend = 0x19,
                         kDirectiveReceive = 0x1a;  // admin
}  // namespace opcode

namespace directive {
inline constexpr uint8_t kIdentify = 0, kStreams = 1, kPlacement = 2;                    // types
inline constexpr uint8_t kReturnParameters = 1, kGetStatus = 2, kAllocateResources = 3;  // receive
inline constexpr uint8_t kEnable = 1;                                                    // send
inline constexpr uint8_t kReleaseId = 1, kReleaseResources = 2;                          // send
}  // namespace directive

namespace log_page {
inline constexpr uint8_t kSmart = 0x02, kEnduranceGroup = 0x09, kFdpConfigurations = 0x20,
                         kFdpStatistics = 0x22, kOcpSmart = 0xc0;
}  // namespace log_page

inline constexpr uint8_t kCnsNamespace = 0x00, kCnsController = 0x01,
                         kCnsCommandSetController = 0x06;  // of command set 0, NVM
inline constexpr uint8_t kFeatureNonOperational = 0x11, kFeatureFdp = 0x1d;
// NOPPME, a bit of kFeatureNonOperational: background work may exceed the power limit of the
// controller's non-operational state.
inline constexpr uint32_t kPermissive = 1;
inline constexpr uint32_t kAllNamespaces = 0xffffffff;
inline constexpr uint8_t kManageRuhs = 1;  // I/O management: RUH status, RUH update
inline constexpr size_t kMaxRanges = 256;  // of one Dataset Management command
inline constexpr uint32_t kMaxTransferLbas = 65536;

// Admin.
Command identify(uint8_t cns, uint32_t nsid);
struct LogPage {
  uint8_t page = 0;
  uint16_t identifier = 0;  // LSI: the endurance group
  uint64_t offset = 0;
};
Command get_log_page(const LogPage& log, uint32_t nsid, size_t bytes);  // bytes: multiple of 4
Command get_features(uint8_t feature, uint32_t cdw11);
Command set_features(uint8_t feature, uint32_t cdw11);  // not saved: lasts until the next reset
Command directive_receive(uint32_t nsid, uint8_t type, uint8_t operation, size_t bytes);
Command directive_send(uint32_t nsid, uint8_t type, uint8_t operation, uint16_t specific);
Command enable_directive(uint32_t nsid, uint8_t type, bool on);
// Dword 0 of the completion is the number of streams allocated, which may be fewer.
Command allocate_streams(uint32_t nsid, uint16_t wanted);

// I/O.
struct Transfer {
  uint64_t first_lba = 0;
  uint32_t lbas = 0;           // 1 to kMaxTransferLbas
  uint8_t directive_type = 0;  // DTYPE
  uint16_t specific = 0;       // DSPEC: a stream's or placement's identifier
  bool force_unit_access = false;
};
Command write(uint32_t nsid, const Transfer& transfer);
Command read(uint32_t nsid, const Transfer& transfer);
Transfer transfer_of(const Command& command);  // Requires: a Read or Write
Command flush(uint32_t nsid);
Command deallocate(uint32_t nsid, size_t ranges);  // 1 to kMaxRanges
Command ruh_status(uint32_t nsid, size_t bytes);
Command ruh_update(uint32_t nsid, size_t placements);  // 1 to 65536

}  // namespace streamfs::nvme
