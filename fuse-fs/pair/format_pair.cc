#include "fuse-fs/pair/format_pair.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/buffer.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/snapshot.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/log_blocks.h"
#include "fuse-fs/pair/meta_place.h"
#include "fuse-fs/pair/pair.h"
#include "fuse-fs/pair/signature.h"
#include "pmem/mirror_region.h"
#include "pmem/region.h"

namespace streamfs::pair {
namespace {

// Old signatures live in the first and last megabyte; one that stays would answer a probe for us.
constexpr uint64_t kWipeBlocks = 256;

Result<void> zero_blocks(blockdev::Device& device, uint64_t first, uint64_t count) {
  const Bytes zeroes = blockdev::scratch(count * kBlockSize);
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
  out.declared_persistent = options.declared_persistent;
  out.trust_memory = options.trust_memory;
  out.label = options.label;
  out.data_identity = device.identity;
  out.created_seconds = static_cast<uint64_t>(clock.now().seconds);
  SFS_ASSIGN(out.random_seed, random_value<uint32_t>());
  SFS_ASSIGN(const auto fresh, random_uuid());
  out.uuid = options.uuid.value_or(fresh);
  return out;
}

Result<void> check_empty(blockdev::Device& device) {
  SFS_ASSIGN(const auto data_holds, signature_of(device));
  if (data_holds) {
    return Error{EEXIST, device.info().path + " holds " + *data_holds + "; -f overwrites it"};
  }
  return {};
}

// For META, or for both copies of it.
Result<std::vector<MetaPlace>> open_places(const std::string& meta_path, uint64_t size,
                                           const FormatPairOptions& options) {
  std::vector<MetaPlace> places;
  for (const std::string& path : {meta_path, options.mirror_path}) {
    if (path.empty()) continue;
    if (!places.empty()) SFS_TRY(check_apart(meta_path, path));
    SFS_ASSIGN(auto place, MetaPlace::open(path, {size, options.force, options.wait_seconds,
                                                  options.declared_persistent}));
    places.push_back(std::move(place));
  }
  return places;
}

std::unique_ptr<pmem::Region> take_region(std::vector<MetaPlace>& places) {
  auto first = places[0].take_region();
  if (places.size() == 1) return first;
  auto second = places[1].take_region();
  if (second->meta_class() < first->meta_class()) std::swap(first, second);
  return std::make_unique<pmem::MirrorRegion>(std::move(first), std::move(second));
}

bool log_would_serve(const pmem::Region& region, const FormatPairOptions& options) {
  return region.meta_class() == pmem::MetaClass::kPersistent || options.trust_memory;
}

Result<uint64_t> checked_intent_log(uint64_t bytes, const pmem::Region& region,
                                    const FormatPairOptions& options) {
  if (bytes == 0 && options.trust_memory)
    return Error{EINVAL, "without an intent log there is nothing to trust META with"};
  if (bytes != 0 && !log_would_serve(region, options))
    return Error{EINVAL,
                 "META is not persistent, so an intent log would not serve; --meta-class "
                 "persistent declares it so, and --trust-memory accepts its loss"};
  if (bytes != 0 && bytes < meta::kRingSize)
    return Error{EINVAL, fmt::format("an intent log has at least {} bytes", meta::kRingSize)};
  return bytes;
}

// Returns the bytes of the intent log. Grows a META whose size is not given by the log's size.
Result<uint64_t> intent_log_bytes(pmem::Region& region, bool size_is_given,
                                  const FormatPairOptions& options, meta::FormatOptions format) {
  if (options.intent_log_bytes) {
    SFS_ASSIGN(format.intent_log_bytes,
               checked_intent_log(*options.intent_log_bytes, region, options));
  } else if (!log_would_serve(region, options)) {
    return 0;
  } else if (size_is_given) {
    format.intent_log_bytes = meta::default_intent_log(format, region.size());
    if (format.intent_log_bytes == 0 && options.trust_memory)
      return Error{ENOSPC,
                   "META is too small for an intent log of the default size; --intent-log "
                   "SIZE or --meta-size SIZE sets another"};
  } else {
    format.intent_log_bytes =
        std::max(meta::intent_log_share(region.size()), meta::kIntentLogLeast);
  }
  if (!size_is_given) SFS_TRY(region.grow(meta::first_meta_size(format)));
  return format.intent_log_bytes;
}

// Writes a snapshot of the empty filesystem to both areas: a log can be restored from either, and
// continued, from the first mount on.
Result<void> begin_log(pmem::Region& region, meta::Superblock& super, blockdev::Device& device) {
  SFS_ASSIGN(const meta::Geometry geometry, meta::Geometry::from(super));
  if (!geometry.meta_log()) return {};
  LogBlocks blocks(device);
  meta::SnapshotHeader header{};
  header.first_chunk = meta::first_number(super, 0);
  for (const uint64_t generation : {uint64_t{1}, uint64_t{2}}) {
    header.generation = generation;
    SFS_TRY(meta::write_snapshot(region, geometry, meta::make_label(super).label, header, blocks));
  }
  super.log_end = meta::LogEnd{header.generation, 0, 0}.packed();
  SFS_TRY(meta::store_superblock(region, super));
  ++super.generation;
  return region.sync();
}

}  // namespace

Result<meta::Superblock> format_open_pair(pmem::Region& region, blockdev::Device& device,
                                          const meta::FormatOptions& options, Clock& clock,
                                          const FormatProgress& progress) {
  const auto step = [&](std::string_view what) {
    if (progress) progress(what);
  };
  SFS_ASSIGN(const meta::Superblock plan,
             meta::plan_format(region.size(), region.meta_class(), options));
  step("wiping old signatures on DATA");
  SFS_TRY(wipe(device));
  step("writing META");
  SFS_TRY(meta::format(region, plan, clock.now()));
  SFS_TRY(region.sync());
  SFS_ASSIGN(meta::Superblock super, meta::load_superblock(region, false));
  step("writing the log and the label on DATA");
  SFS_TRY(begin_log(region, super, device));
  SFS_TRY(write_label(device, meta::make_label(super).label));
  step("done");
  return super;
}

Result<Formatted> format_pair(const std::string& meta_path, const std::string& data,
                              const FormatPairOptions& options, Clock& clock) {
  blockdev::OpenOptions open;
  open.wait_seconds = options.wait_seconds;
  SFS_ASSIGN(auto device, blockdev::open_device(data, open));
  SFS_ASSIGN(meta::FormatOptions format, engine_options(options, device->info(), clock));
  format.meta_log = options.meta_log;
  const uint64_t size = options.meta_size != 0 ? options.meta_size : meta::first_meta_size(format);
  format.mirror = !options.mirror_path.empty();
  SFS_ASSIGN(auto places, open_places(meta_path, size, options));
  const bool size_is_given =
      options.meta_size != 0 || !std::ranges::all_of(places, &MetaPlace::is_new);
  const auto region = take_region(places);
  if (!options.force) SFS_TRY(check_empty(*device));
  SFS_ASSIGN(format.intent_log_bytes, intent_log_bytes(*region, size_is_given, options, format));
  Formatted out;
  out.device = device->info();
  out.meta_class = region->meta_class();
  if (options.dry_run) {
    SFS_ASSIGN(out.super, meta::plan_format(region->size(), out.meta_class, format));
  } else {
    SFS_ASSIGN(out.super, format_open_pair(*region, *device, format, clock, options.progress));
    for (MetaPlace& place : places) place.keep();
  }
  out.meta_size_max = out.super.meta_size;
  if (region->extensible()) {
    out.meta_size_max = std::max(out.meta_size_max, meta::meta_size_max(out.super));
  }
  out.inodes_possible = meta::inodes_possible(out.super, out.meta_size_max);
  return out;
}

}  // namespace streamfs::pair
