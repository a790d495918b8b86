#include "fuse-fs/data/attachments.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/checksum.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/buffer.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::data {
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

Result<std::optional<uint64_t>> read_attachments(blockdev::Device& device) {
  BlockBuffer block;
  SFS_TRY(read_first(device, block.bytes));
  meta::AttachmentRecord record;
  std::memcpy(&record, block.bytes.data() + meta::kAttachmentOffset, sizeof record);
  const bool whole =
      record.magic == meta::kAttachmentMagic && record.checksum == checksum_of(record);
  return whole ? std::optional(record.count) : std::nullopt;
}

Result<void> write_attachments(blockdev::Device& device, uint64_t count) {
  BlockBuffer block;
  SFS_TRY(read_first(device, block.bytes));
  meta::AttachmentRecord record{meta::kAttachmentMagic, count, 0, 0};
  record.checksum = checksum_of(record);
  std::memcpy(block.bytes.data() + meta::kAttachmentOffset, &record, sizeof record);
  {
    blockdev::IoBatch batch(device);
    batch.write(BlockNo{0}, block.bytes, {});
    SFS_TRY(batch.wait());
  }
  return device.flush();
}

Result<void> attach(OpenPair& pair) {
  ++pair.super.attachments;
  SFS_TRY(meta::store_superblock(*pair.region, pair.super));
  ++pair.super.generation;
  SFS_TRY(pair.region->sync());
  return write_attachments(*pair.device, pair.super.attachments);
}

}  // namespace streamfs::data
