#include "fuse-fs/pair/attachments.h"

#include <fmt/format.h>
#include <spdlog/common.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <span>
#include <string>

#include "base/checksum.h"
#include "base/event.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/blockdev/buffer.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"

namespace streamfs::pair {
namespace {

Result<void> read_first(blockdev::Device& device, Bytes block) {
  blockdev::IoBatch batch(device);
  batch.read(BlockNo{0}, block);
  return batch.wait();
}

uint32_t checksum_of(meta::AttachmentRecord record) {
  record.checksum = 0;
  return crc32c(std::as_bytes(std::span(&record, 1)));
}

}  // namespace

Result<std::optional<Attached>> read_attachments(blockdev::Device& device) {
  blockdev::BlockBuffer block;
  SFS_TRY(read_first(device, block.bytes));
  meta::AttachmentRecord record;
  std::memcpy(&record, block.bytes.data() + meta::kAttachmentOffset, sizeof record);
  const bool whole =
      record.magic == wire::kAttachmentMagic && record.checksum == checksum_of(record);
  return whole ? std::optional(Attached{record.count, record.mirror_token}) : std::nullopt;
}

Result<void> write_attachments(blockdev::Device& device, Attached attached) {
  blockdev::BlockBuffer block;
  SFS_TRY(read_first(device, block.bytes));
  meta::AttachmentRecord record{wire::kAttachmentMagic, attached.count, 0, attached.mirror_token};
  record.checksum = checksum_of(record);
  std::memcpy(block.bytes.data() + meta::kAttachmentOffset, &record, sizeof record);
  {
    blockdev::IoBatch batch(device);
    batch.write(BlockNo{0}, block.bytes, {});
    SFS_TRY(batch.wait());
  }
  return device.flush();
}

Result<void> bring_data_level(blockdev::Device& device, pmem::Region& region,
                              const meta::Superblock& super) {
  SFS_ASSIGN(const std::optional<Attached> attached, read_attachments(device));
  if (!attached || attached->count >= super.attachments) return {};
  SFS_TRY(region.sync());
  return write_attachments(device, {super.attachments, super.mirror_token});
}

bool is_older(const meta::Superblock& super, const std::optional<Attached>& attached) {
  if (!attached) return false;
  if (super.attachments != attached->count) return super.attachments < attached->count;
  return super.mirror_token != attached->mirror_token;
}

bool is_ahead(const meta::Superblock& super, const std::optional<Attached>& attached) {
  return attached && super.attachments > attached->count + 1;
}

uint64_t boot_of_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string digits;
  for (char c = 0; file.get(c);) {
    if (c != '-') digits.push_back(c);
  }
  return std::strtoull(digits.substr(0, 16).c_str(), nullptr, 16);
}

bool machine_went_down(const meta::Superblock& super) {
  return super.clean == 0 && super.boot != 0 && super.boot != boot_of_machine();
}

uint32_t draw_token(uint32_t before) {
  std::random_device random;
  uint32_t token = before;
  while (token == before || token == 0) token = random();
  return token;
}

namespace {

// `region`: the pair's, or its remaining copy.
Result<void> attach_region(OpenPair& pair, pmem::Region& region) {
  SFS_TRY(bring_data_level(*pair.device, region, pair.super));
  if (!pair.degraded.empty()) pair.super.mirror_token = draw_token(pair.super.mirror_token);
  pair.super.boot = boot_of_machine();
  ++pair.super.attachments;
  SFS_TRY(meta::store_superblock(region, pair.super));
  ++pair.super.generation;
  SFS_TRY(region.sync());
  return write_attachments(*pair.device, {pair.super.attachments, pair.super.mirror_token});
}

}  // namespace

Result<void> attach(OpenPair& pair) {
  pair.region->on_copy_dropped([&pair](pmem::Region& left, const std::string& why) {
    log_event(Event::kMetaDegraded, spdlog::level::err,
              fmt::format("META is degraded: a copy is given up ({})", why));
    pair.degraded = why;
    return attach_region(pair, left);
  });
  const Result<void> attached = attach_region(pair, *pair.region);
  pair.region->on_copy_dropped({});
  return attached;
}

}  // namespace streamfs::pair
