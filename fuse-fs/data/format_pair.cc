#include "fuse-fs/data/format_pair.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/buffer.h"
#include "fuse-fs/data/pair.h"
#include "fuse-fs/data/signature.h"
#include "fuse-fs/meta/label.h"
#include "pmem/mirror_region.h"
#include "pmem/region.h"

namespace streamfs::data {
namespace {

// Old signatures live in the first and last megabyte; one that stays would answer a probe for us.
constexpr uint64_t kWipeBlocks = 256;

Result<void> zero_blocks(blockdev::Device& device, uint64_t first, uint64_t count) {
  const Bytes zeroes = scratch(count * kBlockSize);
  std::memset(zeroes.data(), 0, zeroes.size());
  blockdev::IoBatch batch(device);
  batch.write(BlockNo{first}, zeroes, {});
  return batch.wait();
}

// Durable with the label, which is written and flushed last: until then nothing is promised.
Result<void> wipe(blockdev::Device& device) {
  const uint64_t capacity = device.info().capacity_blocks;
  const uint64_t count = std::min(kWipeBlocks, capacity);
  SFS_TRY(zero_blocks(device, 0, count));
  if (capacity <= count) return {};
  return zero_blocks(device, std::max(capacity - count, count), std::min(count, capacity - count));
}

template <typename T>
Result<T> random_value() {
  T value{};
  if (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    return Error{EIO, "random numbers"};
  }
  return value;
}

Result<std::array<uint8_t, 16>> random_uuid() {
  using Uuid = std::array<uint8_t, 16>;
  SFS_ASSIGN(Uuid uuid, random_value<Uuid>());
  uuid[6] = static_cast<uint8_t>((uuid[6] & 0x0f) | 0x40);  // RFC 4122, version 4
  uuid[8] = static_cast<uint8_t>((uuid[8] & 0x3f) | 0x80);
  return uuid;
}

Result<meta::FormatOptions> engine_options(const FormatPairOptions& options,
                                           const blockdev::DeviceInfo& device, Clock& clock) {
  meta::FormatOptions out;
  out.data_blocks = device.capacity_blocks;
  out.mean_file_bytes = options.mean_file_bytes;
  out.checksums = options.checksums;
  out.label = options.label;
  out.data_identity = device.identity;
  out.created_seconds = static_cast<uint64_t>(clock.now().seconds);
  SFS_ASSIGN(out.random_seed, random_value<uint32_t>());
  SFS_ASSIGN(const auto fresh, random_uuid());
  out.uuid = options.uuid.value_or(fresh);
  return out;
}

bool exists(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && (!S_ISREG(status.st_mode) || status.st_size > 0);
}

// Opens META, making the file if there is none. `made` tells whether it was made here.
Result<std::unique_ptr<pmem::Region>> open_meta(const std::string& path, uint64_t size,
                                                double wait_seconds, bool& made) {
  pmem::OpenOptions open;
  open.wait_seconds = wait_seconds;
  made = !exists(path);
  open.create = made;
  open.size = made ? size : 0;
  return pmem::open_region(path, open);
}

// A META made for a run that wrote nothing goes away again.
class Remover {
 public:
  Remover() = default;
  Remover(const Remover&) = delete;
  Remover& operator=(const Remover&) = delete;
  ~Remover() {
    for (const std::string& path : paths_) (void)::unlink(path.c_str());
  }
  void add(const std::string& path) { paths_.push_back(path); }
  void keep() { paths_.clear(); }

 private:
  std::vector<std::string> paths_;
};

Result<void> check_empty(pmem::Region& region, const std::string& meta_path) {
  const auto super = meta::load_superblock(region, false);
  if (super.ok() || super.error().code == EIO) {
    return Error{EEXIST, meta_path + " holds a streamfs filesystem; -f overwrites it"};
  }
  SFS_ASSIGN(const auto meta_holds, signature_of(region));
  if (meta_holds) return Error{EEXIST, meta_path + " holds " + *meta_holds + "; -f overwrites it"};
  return {};
}

Result<void> check_empty(blockdev::Device& device) {
  SFS_ASSIGN(const auto data_holds, signature_of(device));
  if (data_holds) {
    return Error{EEXIST, device.info().path + " holds " + *data_holds + "; -f overwrites it"};
  }
  return {};
}

// META, or both copies of it, with nothing of anybody's there.
Result<std::unique_ptr<pmem::Region>> open_places(const std::string& meta_path, uint64_t size,
                                                  const FormatPairOptions& options,
                                                  Remover& remover) {
  std::vector<std::unique_ptr<pmem::Region>> regions;
  for (const std::string& path : {meta_path, options.mirror_path}) {
    if (path.empty()) continue;
    std::error_code none;
    if (!regions.empty() && std::filesystem::equivalent(meta_path, path, none))
      return Error{EMEDIUMTYPE, "META and its mirror are the same; give two places"};
    bool made = false;
    SFS_ASSIGN(auto region, open_meta(path, size, options.wait_seconds, made));
    if (made) remover.add(path);
    if (!options.force) SFS_TRY(check_empty(*region, path));
    regions.push_back(std::move(region));
  }
  if (regions.size() == 1) return std::move(regions[0]);
  if (regions[1]->meta_class() < regions[0]->meta_class()) std::swap(regions[0], regions[1]);
  return std::unique_ptr<pmem::Region>(
      std::make_unique<pmem::MirrorRegion>(std::move(regions[0]), std::move(regions[1])));
}

}  // namespace

Result<meta::Superblock> format_open_pair(pmem::Region& region, blockdev::Device& device,
                                          const meta::FormatOptions& options, Clock& clock) {
  SFS_ASSIGN(const meta::Superblock plan,
             meta::plan_format(region.size(), region.meta_class(), options));
  SFS_TRY(wipe(device));
  SFS_TRY(meta::format(region, plan, clock.now()));
  SFS_TRY(region.sync());
  SFS_ASSIGN(const meta::Superblock super, meta::load_superblock(region, false));
  SFS_TRY(write_label(device, meta::make_label(super).label));
  return super;
}

Result<Formatted> format_pair(const std::string& meta_path, const std::string& data,
                              const FormatPairOptions& options, Clock& clock) {
  blockdev::OpenOptions open;
  open.wait_seconds = options.wait_seconds;
  SFS_ASSIGN(auto device, blockdev::open_device(data, open));
  SFS_ASSIGN(meta::FormatOptions format, engine_options(options, device->info(), clock));
  format.meta_log = options.meta_log.value_or(false);
  const uint64_t size = options.meta_size != 0 ? options.meta_size : meta::meta_size_for(format);
  format.mirror = !options.mirror_path.empty();
  Remover remover;
  SFS_ASSIGN(auto region, open_places(meta_path, size, options, remover));
  format.meta_log = options.meta_log.value_or(region->meta_class() == pmem::MetaClass::kVolatile);
  if (!options.force) SFS_TRY(check_empty(*device));
  Formatted out;
  out.device = device->info();
  out.meta_class = region->meta_class();
  if (options.dry_run) {
    SFS_ASSIGN(out.super, meta::plan_format(region->size(), out.meta_class, format));
  } else {
    SFS_ASSIGN(out.super, format_open_pair(*region, *device, format, clock));
    remover.keep();
  }
  out.inodes_possible = meta::inodes_possible(out.super);
  return out;
}

}  // namespace streamfs::data
