#include "fuse-fs/nvme/command.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "fuse-fs/nvme/fields.h"

namespace streamfs::nvme {
namespace {

constexpr uint32_t kForceUnitAccess = uint32_t{1} << 30;
constexpr uint32_t kDeallocate = uint32_t{1} << 2;  // AD of Dataset Management

uint32_t low(uint64_t value) {
  return static_cast<uint32_t>(value);
}
uint32_t high(uint64_t value) {
  return static_cast<uint32_t>(value >> 32);
}

// NUMD: dwords, counted from 0.
uint32_t dwords(size_t bytes) {
  SFS_ASSERT(bytes >= 4 && bytes % 4 == 0);
  return static_cast<uint32_t>(bytes / 4 - 1);
}

uint32_t operation_of(uint8_t type, uint8_t operation, uint16_t specific) {
  return operation | uint32_t{type} << 8 | uint32_t{specific} << 16;
}

Command move(uint8_t code, uint32_t nsid, const Transfer& t) {
  SFS_ASSERT(t.lbas >= 1 && t.lbas <= kMaxTransferLbas);
  const uint32_t flags = t.force_unit_access ? kForceUnitAccess : 0;
  return {code, nsid, {low(t.first_lba), high(t.first_lba), (t.lbas - 1) | flags, 0}};
}

}  // namespace

Command identify(uint8_t cns, uint32_t nsid) {
  return {opcode::kIdentify, nsid, {cns}};
}

Command get_log_page(const LogPage& log, uint32_t nsid, size_t bytes) {
  const uint32_t count = dwords(bytes);
  return {opcode::kGetLogPage,
          nsid,
          {log.page | (count & 0xffff) << 16, count >> 16 | uint32_t{log.identifier} << 16,
           low(log.offset), high(log.offset)}};
}

Command get_features(uint8_t feature, uint32_t cdw11) {
  return {opcode::kGetFeatures, 0, {feature, cdw11}};
}

Command set_features(uint8_t feature, uint32_t cdw11) {
  return {opcode::kSetFeatures, 0, {feature, cdw11}};
}

Command directive_receive(uint32_t nsid, uint8_t type, uint8_t operation, size_t bytes) {
  return {opcode::kDirectiveReceive, nsid, {dwords(bytes), operation_of(type, operation, 0)}};
}

Command directive_send(uint32_t nsid, uint8_t type, uint8_t operation, uint16_t specific) {
  return {opcode::kDirectiveSend, nsid, {0, operation_of(type, operation, specific)}};
}

Command enable_directive(uint32_t nsid, uint8_t type, bool on) {
  Command command = directive_send(nsid, directive::kIdentify, directive::kEnable, 0);
  command.cdw[2] = (on ? 1 : 0) | uint32_t{type} << 8;
  return command;
}

Command allocate_streams(uint32_t nsid, uint16_t wanted) {
  return {opcode::kDirectiveReceive,
          nsid,
          {0, operation_of(directive::kStreams, directive::kAllocateResources, 0), wanted}};
}

Command write(uint32_t nsid, const Transfer& transfer) {
  Command command = move(opcode::kWrite, nsid, transfer);
  command.cdw[2] |= uint32_t{transfer.directive_type} << 20;
  command.cdw[3] = uint32_t{transfer.specific} << 16;
  return command;
}

Command read(uint32_t nsid, const Transfer& transfer) {
  return move(opcode::kRead, nsid, transfer);
}

Transfer transfer_of(const Command& command) {
  Transfer t;
  t.first_lba = command.cdw10() | uint64_t{command.cdw11()} << 32;
  t.lbas = (command.cdw12() & 0xffff) + 1;
  t.directive_type = static_cast<uint8_t>(command.cdw12() >> 20 & 0xf);
  t.specific = static_cast<uint16_t>(command.cdw13() >> 16);
  t.force_unit_access = (command.cdw12() & kForceUnitAccess) != 0;
  return t;
}

Command flush(uint32_t nsid) {
  return {opcode::kFlush, nsid, {}};
}

Command deallocate(uint32_t nsid, size_t ranges) {
  SFS_ASSERT(ranges >= 1 && ranges <= kMaxRanges);
  return {opcode::kDatasetManagement, nsid, {static_cast<uint32_t>(ranges - 1), kDeallocate}};
}

Command ruh_status(uint32_t nsid, size_t bytes) {
  return {opcode::kIoManagementReceive, nsid, {kManageRuhs, dwords(bytes)}};
}

Command ruh_update(uint32_t nsid, size_t placements) {
  SFS_ASSERT(placements >= 1 && placements <= 65536);
  return {
      opcode::kIoManagementSend, nsid, {kManageRuhs | static_cast<uint32_t>(placements - 1) << 16}};
}

}  // namespace streamfs::nvme
