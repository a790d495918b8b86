#include "fuse-fs/pair/pair.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/blockdev/buffer.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/growth.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/attachments.h"
#include "fuse-fs/pair/log_blocks.h"
#include "fuse-fs/pair/meta_copies.h"
#include "pmem/region.h"

namespace streamfs::pair {
namespace {

constexpr const char* kHowToName =
    "META is what --meta (to mount: -o meta=) names, DATA the word without an option";

uint64_t magic_of(ConstBytes bytes) {
  uint64_t magic = 0;
  if (bytes.size() >= sizeof magic) std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic;
}

Error wrong_medium(std::string sentence) {
  return Error{EMEDIUMTYPE, std::move(sentence)};
}

// Everything that deciding about META takes.
struct Search {
  std::string meta_path, data_path;
  meta::DataLabel label;
  std::optional<Attached> attached;  // as DATA says
  const PairOptions& options;

  bool declared_persistent() const {
    return options.declare_persistent || (label.geometry.features & meta::kFeatureDeclared) != 0;
  }
  bool has_log() const { return label.log_first_block != 0; }
  // A reboot may take it: it comes back by itself, but only to a place as volatile.
  bool was_volatile() const {
    return has_log() &&
           label.geometry.meta_class == static_cast<uint8_t>(pmem::MetaClass::kVolatile);
  }
  std::string advice() const {
    if (!has_log()) return "give the META that was mounted last";
    return fmt::format(
        "give the META that was mounted last, or rebuild it from the log on DATA: "
        "fsck.streamfs --restore --meta {} {}",
        meta_path, data_path);
  }
};

// A place for what is lost; unlike what is found there, a new file may go away again.
Result<std::unique_ptr<pmem::Region>> make_meta(const Search& search) {
  pmem::OpenOptions open;
  open.wait_seconds = search.options.wait_seconds;
  open.declared_persistent = search.declared_persistent();
  open.create = true;
  open.size = search.label.geometry.meta_size;
  std::error_code none;
  const bool is_new = !std::filesystem::exists(search.meta_path, none);
  SFS_ASSIGN(auto region, pmem::open_region(search.meta_path, open));
  if (search.options.restore_meta || region->meta_class() == pmem::MetaClass::kVolatile)
    return region;
  if (is_new) std::filesystem::remove(search.meta_path, none);
  return Error{ENOENT, fmt::format("META was volatile and {} would not be ({})", search.meta_path,
                                   search.advice())};
}

Result<std::unique_ptr<pmem::Region>> open_meta(const Search& search) {
  pmem::OpenOptions open;
  open.read_only = search.options.read_only;
  open.wait_seconds = search.options.wait_seconds;
  open.declared_persistent = search.declared_persistent();
  auto region = pmem::open_region(search.meta_path, open);
  const bool gone =
      !region.ok() && (region.error().code == ENOENT || region.error().code == EINVAL);
  if (!gone) return region;
  const bool may_make = search.was_volatile() || (search.options.restore_meta && search.has_log());
  if (may_make && !search.options.read_only) return make_meta(search);
  if (!search.has_log()) return region;
  return Error{region.error().code,
               fmt::format("{} ({})", region.error().context, search.advice())};
}

bool is_regular_file(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path, none);
}

// Memory that lost its power holds anything; in a file, anything is somebody's.
bool may_be_overwritten(const Search& search, const pmem::Region& region) {
  if (!is_regular_file(search.meta_path)) return true;
  for (const uint64_t offset : meta::kSuperOffset) {
    const ConstBytes copy(region.at(offset), sizeof(meta::Superblock));
    if (std::ranges::any_of(copy, [](std::byte each) { return each != std::byte{0}; }))
      return false;
  }
  return true;
}

Result<meta::Superblock> restore(const Search& search, OpenPair& pair, std::string_view why) {
  LogBlocks log(*pair.device);
  meta::DataLabel label = search.label;
  if (search.attached) {
    label.geometry.attachments = search.attached->count;
    label.geometry.mirror_token = search.attached->mirror_token;
  }
  // The rebuilt META is not in step with a copy that turns up again, and counts for more.
  if ((label.geometry.features & meta::kFeatureMirror) != 0) {
    ++label.geometry.attachments;
    label.geometry.mirror_token = draw_token(label.geometry.mirror_token);
  }
  spdlog::warn("{} {}; rebuilding it from the metadata log", search.meta_path, why);
  SFS_ASSIGN(const meta::Restored restored, meta::restore_from_log(*pair.region, label, log));
  if (!restored.damage.empty()) {
    spdlog::warn("{}; snapshot {} is used instead, with the log after it", restored.damage,
                 restored.snapshot_generation);
  }
  spdlog::warn("rebuilt: {} records after snapshot {}{}", restored.records,
               restored.snapshot_generation,
               restored.ended_early ? ", up to one that had not arrived whole" : "");
  SFS_ASSIGN(const meta::Superblock super, meta::load_superblock(*pair.region, true));
  SFS_TRY(check_pair(super, search.label, pair.device->info()));
  return super;
}

// Whether one half stood still while the other was in use.
Result<void> check_attachments(const Search& search, const meta::Superblock& super) {
  if (!search.attached) return {};
  const uint64_t here = super.attachments, there = search.attached->count;
  if (is_older(super, search.attached)) {
    return wrong_medium(
        fmt::format("{} is an older copy of this filesystem's META (mounts and unmounts: {}, on "
                    "DATA {}); {}",
                    search.meta_path, here, there, search.advice()));
  }
  if (is_ahead(super, search.attached)) {
    return wrong_medium(fmt::format(
        "{} is an older copy of this filesystem's DATA (mounts and unmounts: {}, on META {}); "
        "give the DATA that was mounted last",
        search.data_path, there, here));
  }
  return {};
}

// Without any META: what the log says, in memory.
Result<void> open_in_memory(const Search& search, OpenPair& pair) {
  if (!search.options.read_only) return Error{EINVAL, "a META in memory is only for reading"};
  if (!search.has_log())
    return Error{EEXIST, "this filesystem keeps no log of META on DATA: META itself is needed"};
  pair.region =
      pmem::make_memory_region(search.label.geometry.meta_size, pmem::MetaClass::kVolatile);
  SFS_ASSIGN(pair.super, restore(search, pair, "is not used"));
  pair.in_order = true;
  return {};
}

// Rebuilds a META whose superblock is gone, or returns why it may not be rebuilt.
Result<meta::Superblock> replace_lost(const Search& search, OpenPair& pair, const Error& failure) {
  const ConstBytes start(pair.region->at(0), std::min<uint64_t>(pair.region->size(), kBlockSize));
  if (magic_of(start) == wire::kDataMagic) {
    return wrong_medium(search.meta_path + " is a data device, named as META: " + kHowToName);
  }
  // A META of another version is somebody's and stays, on any medium and under any option.
  if (failure.code == EMEDIUMTYPE)
    return wrong_medium(fmt::format("{}: {}", search.meta_path, failure.context));
  const bool is_volatile = pair.region->meta_class() == pmem::MetaClass::kVolatile;
  const bool asked = search.options.restore_meta || (search.was_volatile() && is_volatile);
  const bool fits = pair.region->size() >= search.label.geometry.meta_size;
  const bool damaged = search.options.restore_meta && failure.code == EIO;
  if (search.options.read_only && asked)
    return Error{EROFS, "META has to be rebuilt: mount read and write once"};
  if (search.has_log() && asked && fits && (damaged || may_be_overwritten(search, *pair.region))) {
    return restore(search, pair, "was lost");
  }
  if (search.has_log()) {
    return Error{failure.code == EINVAL ? EMEDIUMTYPE : failure.code,
                 fmt::format("{}: {}; {}", search.meta_path, failure.context, search.advice())};
  }
  if (failure.code != EINVAL) return failure;
  return wrong_medium(fmt::format("{}: {}; make one with mkfs.streamfs, or {}", search.meta_path,
                                  failure.context, kHowToName));
}

// META as it is, or as the metadata log can rebuild it; it belongs to DATA.
Result<meta::Superblock> find_superblock(const Search& search, OpenPair& pair) {
  const auto super = meta::load_superblock(*pair.region, !search.options.read_only);
  if (!super.ok()) return replace_lost(search, pair, super.error());
  SFS_TRY(check_pair(*super, search.label, pair.device->info()));
  const Result<void> current = check_attachments(search, *super);
  if (!current.ok() && search.options.restore_meta && search.has_log() &&
      is_older(*super, search.attached))
    return restore(search, pair, "is an older copy");
  SFS_TRY(current);
  if (search.options.restore_meta)
    return Error{EEXIST, search.meta_path + " is whole: nothing to restore"};
  return *super;
}

// After a power cut no ring tells which pages the kernel had not written back: only a copy whose
// stores reach its medium in order is as it was, and the log on DATA is such a copy. A read-only
// mount has META mapped privately, and rebuilds it in memory.
Result<void> rebuild_after_power_cut(const Search& search, OpenPair& pair) {
  if (pair.in_order || !machine_went_down(pair.super)) return {};
  if (!search.has_log() || search.options.meta_as_it_is) {
    pair.unproven = true;
    return {};
  }
  auto restored = restore(search, pair, "was in use when the machine went down");
  if (restored.ok()) {
    pair.super = *restored;
    return {};
  }
  const int code = restored.error().code;
  if (code != EIO && code != ENODATA) return restored.error();
  return Error{code, fmt::format("{} (fsck.streamfs --without-log takes what {} itself holds)",
                                 restored.error().message(), search.meta_path)};
}

Result<std::optional<MetaCopies>> find_copies(const Search& search) {
  const PairOptions& options = search.options;
  return open_copies({{search.meta_path, options.mirror_path},
                      search.label,
                      search.attached,
                      options.read_only,
                      options.make_mirror,
                      options.restore_meta,
                      search.declared_persistent(),
                      options.wait_seconds});
}

// Both places of a META that is kept twice. With no current copy in either, the first is rebuilt or
// refused as one that is kept once is.
Result<void> open_both(const Search& search, OpenPair& pair) {
  SFS_ASSIGN(auto copies, find_copies(search));
  if (!copies) {
    SFS_ASSIGN(pair.region, open_meta(search));
    SFS_TRY(find_superblock(search, pair));
    pair.region.reset();
    SFS_ASSIGN(copies, find_copies(search));
  } else if (search.options.restore_meta) {
    return Error{EEXIST, "a copy of META is whole: nothing to restore"};
  }
  if (!copies) return Error{EIO, "META was rebuilt, and is not there"};
  SFS_TRY(check_pair(copies->super, search.label, pair.device->info()));
  SFS_TRY(check_attachments(search, copies->super));
  pair.region = std::move(copies->region);
  pair.super = copies->super;
  pair.degraded = std::move(copies->degraded);
  pair.in_order = copies->in_order;
  return {};
}

// If a single place was named, a second copy must not be left behind unasked.
Result<void> check_is_all(const Search& search, const meta::Superblock& super) {
  if ((super.features & meta::kFeatureMirror) == 0) return {};
  return wrong_medium(fmt::format(
      "META of {} is kept twice: name the other copy, too (to mount: -o mirror=PATH, else --mirror "
      "PATH), or go on without it (-o degraded, --degraded)",
      search.data_path));
}

}  // namespace

Result<meta::DataLabel> read_label(blockdev::Device& device) {
  blockdev::BlockBuffer block;
  blockdev::IoBatch batch(device);
  batch.read(BlockNo{0}, block.bytes);
  SFS_TRY(batch.wait());
  const std::string& path = device.info().path;
  if (magic_of(block.bytes) == wire::kSuperMagic) {
    return wrong_medium(path + " is a META device, named as DATA: " + kHowToName);
  }
  if (magic_of(block.bytes) == wire::kImageMagic) {
    return wrong_medium(fmt::format("{} is an emulated SSD: name it emu:{}", path, path));
  }
  auto label = meta::parse_label(block.bytes);
  if (label.ok() || label.error().code != EINVAL) return label;
  return wrong_medium(fmt::format("{}: {}; make one with mkfs.streamfs, or {}", path,
                                  label.error().context, kHowToName));
}

Result<void> write_label(blockdev::Device& device, const meta::DataLabel& label) {
  blockdev::BlockBuffer block;
  std::memcpy(block.bytes.data(), &label, sizeof label);
  {
    blockdev::IoBatch batch(device);
    batch.write(BlockNo{0}, block.bytes, {});
    SFS_TRY(batch.wait());
  }
  return device.flush();
}

// Each copy has sectors of its own; the others are written again as they are.
Result<void> replace_label(blockdev::Device& device, const meta::DataLabel& label) {
  blockdev::BlockBuffer block;
  {
    blockdev::IoBatch batch(device);
    batch.read(BlockNo{0}, block.bytes);
    SFS_TRY(batch.wait());
  }
  for (const uint64_t offset : {meta::kLabelOffset[1], meta::kLabelOffset[0]}) {
    std::memcpy(block.bytes.data() + offset, &label, sizeof label);
    blockdev::IoBatch batch(device);
    batch.write(BlockNo{0}, block.bytes, {});
    SFS_TRY(batch.wait());
    SFS_TRY(device.flush());
  }
  return {};
}

Result<void> prove(const OpenPair& pair) {
  spdlog::warn(
      "the machine went down while META was in use, and no log says in which order it was "
      "written back; checking it");
  SFS_ASSIGN(const meta::Geometry geometry, meta::Geometry::from(pair.super));
  SFS_TRY(meta::recover_journal(*pair.region, geometry));
  SFS_ASSIGN(const meta::CheckReport report, meta::check(*pair.region, pair.super, {}));
  if (report.sound()) return {};
  return Error{EUCLEAN,
               fmt::format("META was not written back in order when the machine went down, and is "
                           "damaged: {} ({} in all); fsck.streamfs -y repairs it",
                           report.problems.front().text, report.problems.size())};
}

Result<void> renew_label(OpenPair& pair) {
  const meta::Superblock& known = pair.label.geometry;
  const bool same_size = meta::same_size(pair.super, known);
  const uint32_t tuned = (pair.super.features ^ known.features) & meta::kTunableFeatures;
  if (same_size && tuned == 0 && pair.super.version == pair.label.version) return {};
  if (!same_size || tuned != 0)
    spdlog::warn("a growth or change of features was cut short; it is complete now");
  pair.label = meta::grown_label(pair.label, pair.super);
  return replace_label(*pair.device, pair.label);
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

namespace {

Result<OpenPair> open_once(const std::string& meta_path, const std::string& data,
                           const PairOptions& options) {
  OpenPair pair{};
  blockdev::OpenOptions open;
  open.wait_seconds = options.wait_seconds;
  open.read_only = options.read_only;
  open.real_time = options.real_time;
  SFS_ASSIGN(pair.device, blockdev::open_device(data, open));
  SFS_ASSIGN(const meta::DataLabel label, read_label(*pair.device));
  pair.label = label;
  SFS_ASSIGN(const std::optional<Attached> attached, read_attachments(*pair.device));
  const Search search{meta_path, data, label, attached, options};
  if (search.options.restore_meta && !search.has_log())
    return Error{EEXIST,
                 "nothing to restore META from: this filesystem keeps no log of it on DATA"};
  if (options.meta_in_memory) {
    SFS_TRY(open_in_memory(search, pair));
    return pair;
  }
  if (!options.mirror_path.empty()) {
    SFS_TRY(open_both(search, pair));
    SFS_TRY(rebuild_after_power_cut(search, pair));
    return pair;
  }
  if (!options.degraded) SFS_TRY(check_is_all(search, search.label.geometry));
  SFS_ASSIGN(pair.region, open_meta(search));
  SFS_ASSIGN(pair.super, find_superblock(search, pair));
  pair.in_order = pair.region->meta_class() == pmem::MetaClass::kPersistent;
  SFS_TRY(rebuild_after_power_cut(search, pair));
  if ((pair.super.features & meta::kFeatureMirror) == 0) return pair;
  if (!options.degraded) SFS_TRY(check_is_all(search, pair.super));
  pair.degraded = "the other copy: not named";
  spdlog::warn("META is degraded: {} is used without its mirror", meta_path);
  return pair;
}

}  // namespace

// A cut in streamctl tune may leave META declared persistent in the superblock but not in the
// label. The label decides the class in which META is opened, so open_once() opens META in the old
// class. open_pair() completes the label and opens META again before any fsync can return.
Result<OpenPair> open_pair(const std::string& meta_path, const std::string& data,
                           const PairOptions& options) {
  SFS_ASSIGN(OpenPair pair, open_once(meta_path, data, options));
  const uint32_t differ = pair.super.features ^ pair.label.geometry.features;
  if ((differ & meta::kFeatureDeclared) == 0 || options.read_only) return pair;
  SFS_TRY(pair.region->sync());
  SFS_TRY(renew_label(pair));
  pair = {};  // and its locks
  return open_once(meta_path, data, options);
}

}  // namespace streamfs::pair
