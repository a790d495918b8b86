#include "fuse-fs/data/pair.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/buffer.h"
#include "fuse-fs/data/durability.h"
#include "fuse-fs/meta/label.h"
#include "pmem/region.h"

namespace streamfs::data {
namespace {

uint64_t magic_of(ConstBytes bytes) {
  uint64_t magic = 0;
  if (bytes.size() >= sizeof magic) std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic;
}

Error wrong_medium(std::string sentence) {
  return Error{EMEDIUMTYPE, std::move(sentence)};
}

bool was_volatile(const meta::DataLabel& label) {
  return label.geometry.meta_class == static_cast<uint8_t>(pmem::MetaClass::kVolatile) &&
         label.log_first_block != 0;
}

Result<std::unique_ptr<pmem::Region>> open_meta(const std::string& path,
                                                const meta::DataLabel& label,
                                                const MountOptions& options) {
  pmem::OpenOptions open;
  open.read_only = options.read_only;
  open.wait_seconds = options.wait_seconds;
  auto region = pmem::open_region(path, open);
  const bool gone =
      !region.ok() && (region.error().code == ENOENT || region.error().code == EINVAL);
  if (!gone || !was_volatile(label) || options.read_only) return region;
  open.create = true;  // a file on a tmpfs that did not outlive the reboot
  open.size = label.geometry.meta_size;
  return pmem::open_region(path, open);
}

// META as it is, or as the metadata log can rebuild it.
Result<meta::Superblock> find_superblock(const std::string& meta_path, OpenPair& pair,
                                         const meta::DataLabel& label,
                                         const MountOptions& options) {
  pmem::Region& region = *pair.region;
  auto super = meta::load_superblock(region, !options.read_only);
  if (super.ok()) return super;
  const ConstBytes start(region.at(0), std::min<uint64_t>(region.size(), kBlockSize));
  if (magic_of(start) == meta::kDataMagic) {
    return wrong_medium(meta_path + " is a data device: give META first, then DATA");
  }
  const bool lost = region.meta_class() == pmem::MetaClass::kVolatile || was_volatile(label);
  if (label.log_first_block != 0 && lost && !options.read_only &&
      region.size() >= label.geometry.meta_size) {
    LogBlocks log(*pair.device);
    spdlog::warn("{} was lost; rebuilding it from the metadata log", meta_path);
    SFS_ASSIGN(const meta::Restored restored, meta::restore_from_log(region, label, log));
    spdlog::warn("rebuilt: {} records after snapshot {}", restored.records,
                 restored.snapshot_generation);
    return meta::load_superblock(region, true);
  }
  if (super.error().code != EINVAL) return super;
  return wrong_medium(
      fmt::format("{}: {}; make one with mkfs.streamfs, or check the order of the "
                  "devices (META first)",
                  meta_path, super.error().context));
}

}  // namespace

Result<meta::DataLabel> read_label(blockdev::Device& device) {
  BlockBuffer block;
  blockdev::IoBatch batch(device);
  batch.read(BlockNo{0}, block.bytes);
  SFS_TRY(batch.wait());
  const std::string& path = device.info().path;
  if (magic_of(block.bytes) == meta::kSuperMagic) {
    return wrong_medium(path + " is a META device: give META first, then DATA");
  }
  auto label = meta::parse_label(block.bytes);
  if (label.ok() || label.error().code != EINVAL) return label;
  return wrong_medium(
      fmt::format("{}: {}; make one with mkfs.streamfs, or check the order of the "
                  "devices (META first)",
                  path, label.error().context));
}

Result<void> write_label(blockdev::Device& device, const meta::DataLabel& label) {
  BlockBuffer block;
  std::memcpy(block.bytes.data(), &label, sizeof label);
  {
    blockdev::IoBatch batch(device);
    batch.write(BlockNo{0}, block.bytes, {});
    SFS_TRY(batch.wait());
  }
  return device.flush();
}

Result<void> check_pair(const meta::Superblock& super, const meta::DataLabel& label,
                        const blockdev::DeviceInfo& device) {
  if (std::memcmp(super.uuid, label.geometry.uuid, sizeof super.uuid) != 0) {
    return wrong_medium(fmt::format(
        "META and {} are halves of different filesystems; mount each with its own other half",
        device.path));
  }
  if (device.capacity_blocks < super.data_blocks) {
    return wrong_medium(fmt::format("{} has shrunk to {} of {} blocks; restore it to its full size",
                                    device.path, device.capacity_blocks, super.data_blocks));
  }
  // The uuid is in the bytes, the identity is the device's: a copied disk differs only in that.
  const std::string_view known(super.data_identity,
                               ::strnlen(super.data_identity, sizeof super.data_identity));
  if (known != std::string_view(device.identity).substr(0, sizeof super.data_identity - 1)) {
    spdlog::warn("{} is a copy, or has moved: it was {} at mkfs, now {}", device.path, known,
                 device.identity);
  }
  return {};
}

Result<OpenPair> open_pair(const std::string& meta_path, const std::string& data,
                           const MountOptions& options) {
  OpenPair pair{};
  blockdev::OpenOptions open;
  open.wait_seconds = options.wait_seconds;
  open.read_only = options.read_only;
  SFS_ASSIGN(pair.device, blockdev::open_device(data, open));
  SFS_ASSIGN(const meta::DataLabel label, read_label(*pair.device));
  SFS_ASSIGN(pair.region, open_meta(meta_path, label, options));
  SFS_ASSIGN(pair.super, find_superblock(meta_path, pair, label, options));
  SFS_TRY(check_pair(pair.super, label, pair.device->info()));
  return pair;
}

}  // namespace streamfs::data
