#include "tests/crash/joint_rig.h"

#include <linux/falloc.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/forwarding_device.h"
#include "fuse-fs/data/checksums.h"
#include "fuse-fs/data/recovered_blocks.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/intent_log.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/superblock.h"
#include "fuse-fs/pair/format_pair.h"
#include "fuse-fs/pair/log_blocks.h"
#include "fuse-fs/pair/pair.h"
#include "tests/crash/kept_twice.h"

namespace streamfs::joint {
namespace rig {

constexpr uint64_t kMetaBytes = 1536 << 10;  // of a copy
constexpr uint64_t kDataBlocks = 2560;
constexpr uint64_t kTickMs = 500, kTicks = 11;

meta::FormatOptions format_options(Kept kept) {
  meta::FormatOptions options;
  options.data_blocks = kDataBlocks;
  options.meta_log = true;
  options.mirror = kept == Kept::kTwice;
  options.intent_log_bytes = meta::kRingSize;
  options.random_seed = 7;
  options.uuid = {7};
  options.data_identity = "ram-1";
  return options;
}

data::MountOptions mount_options() {
  data::MountOptions options;
  options.write_behind_mib = 1;
  options.cache_mib = 4;
  options.placement = placement::Mode::kOff;
  options.idle_work = data::IdleWorkWhen::kOff;
  return options;
}

int value_of(ConstBytes sector) {
  const bool same = std::memcmp(&sector[0], &sector[1], sector.size() - 1) == 0;
  return same ? static_cast<int>(sector[0]) : kMixed;
}

}  // namespace rig

Image::Image(Kept how)
    : kept(how),
      meta((how == Kept::kTwice ? 2 : 1) * rig::kMetaBytes / kWordSize),
      data(rig::kDataBlocks) {
  pmem::RecordingRegion region(meta);
  MemoryDevice device(data, contents);
  StillClock clock;
  const auto made =
      pair::format_open_pair(*view(region, kept), device, rig::format_options(kept), clock);
  SFS_ASSERT(made.ok());
  meta = region.words();
}

std::unique_ptr<pmem::Region> view(pmem::Region& region, Kept kept) {
  if (kept == Kept::kTwice) return meta::mirror(region);
  return std::make_unique<meta::Side>(region);
}

// ---- Mounts

namespace rig {

// Mends each copy's superblocks, and then the older copy's from the newer one's, as open_pair()
// chooses between copies. Returns the newest.
Result<meta::Superblock> load_superblocks(pmem::Region& region) {
  SFS_ASSIGN(meta::Superblock newest, meta::load_superblock(region.copy(0), true));
  if (region.copies() == 1) return newest;
  SFS_ASSIGN(const meta::Superblock other, meta::load_superblock(region.copy(1), true));
  if (other.generation == newest.generation) return newest;
  if (other.generation > newest.generation) newest = other;
  SFS_TRY(meta::store_superblock(region, newest));
  ++newest.generation;
  return newest;
}

}  // namespace rig

Result<std::unique_ptr<Mount>> Mount::open(std::unique_ptr<pmem::Region> region,
                                           MemoryDevice& device, Clock& clock, bool attaches) {
  std::unique_ptr<Mount> made(new Mount());
  made->region_ = region.get();
  pair::OpenPair pair;
  pair.region = std::move(region);
  pair.device = std::make_unique<blockdev::ForwardingDevice>(device);
  SFS_ASSIGN(pair.super, rig::load_superblocks(*pair.region));
  SFS_ASSIGN(pair.label, pair::read_label(device));
  if (attaches) {
    ++pair.super.attachments;  // chunks of the log are numbered by it
    SFS_TRY(meta::store_superblock(*pair.region, pair.super));
    ++pair.super.generation;
    SFS_TRY(pair::renew_label(pair));
  }
  SFS_ASSIGN(made->fs_,
             data::FilesystemImpl::open(std::move(pair), rig::mount_options(), clock, false));
  return made;
}

namespace rig {

// Returns the files of the root, which `read` fills. `of`: a filesystem or an engine.
template <typename Of, typename Read>
Result<FoundFiles> files_of(Of& of, const Read& read) {
  std::vector<std::string> names;
  SFS_TRY(of.read_directory(of.root(), 0, [&](const meta::DirectoryEntry& entry) {
    if (entry.name != "." && entry.name != "..") names.emplace_back(entry.name);
    return true;
  }));
  FoundFiles found;
  std::vector<std::byte> bytes;
  for (const std::string& name : names) {
    SFS_ASSIGN(const meta::Attributes file, of.lookup(of.root(), name));
    bytes.resize(round_up(file.size, kBlockSize));
    SFS_TRY(read(file, Bytes(bytes)));
    FoundFile& content = found[name];
    content.size = file.size;
    for (uint64_t at = 0; at + kSectorBytes <= file.size; at += kSectorBytes)
      content.sectors.push_back(value_of(ConstBytes(bytes).subspan(at, kSectorBytes)));
  }
  return found;
}

Result<void> check_meta(pmem::Region& region) {
  meta::CheckOptions options;
  options.threads = 1;
  SFS_ASSIGN(const meta::Superblock super, meta::load_superblock(region, true));
  SFS_ASSIGN(const meta::CheckReport report, meta::check(region, super, options));
  return report.sound() ? Result<void>() : Error{EIO, report.problems[0].text};
}

// Reads as DataPath does.
Result<void> read_pieces(meta::Engine& engine, blockdev::Device& device, InodeId id, Bytes bytes) {
  data::Checksums checksums(engine, true);
  SFS_ASSIGN(const auto pieces, engine.map(id, FileBlock{0}, bytes.size() / kBlockSize));
  uint64_t at = 0;
  for (const meta::Piece& piece : pieces) {
    const Bytes part = bytes.subspan(at, piece.length * kBlockSize);
    at += part.size();
    std::memset(part.data(), 0, part.size());
    if (piece.hole || piece.unwritten) continue;
    blockdev::IoBatch batch(device);
    batch.read(piece.block, part);
    SFS_TRY(batch.wait());
    SFS_TRY(checksums.verify(id, piece.block, part, true));
  }
  return {};
}

}  // namespace rig

Result<FoundFiles> Mount::look() {
  SFS_ASSIGN(const FoundFiles found,
             rig::files_of(*fs_, [&](const meta::Attributes& file, Bytes bytes) -> Result<void> {
               SFS_ASSIGN(const size_t length, fs_->read(file.id, 0, bytes.first(file.size)));
               return length == file.size ? Result<void>() : Error{EIO, "a file is too short"};
             }));
  SFS_TRY(rig::check_meta(*region_));
  return found;
}

Result<FoundFiles> recover_and_look(pmem::Region& region, MemoryDevice& device) {
  SFS_ASSIGN(const meta::Superblock super, rig::load_superblocks(region));
  StillClock clock;
  SFS_ASSIGN(const auto engine,
             meta::Engine::open(region, super, clock, {false, false, uint64_t{1} << 20}));
  SFS_ASSIGN(const auto log, meta::IntentLog::open(region, engine->geometry()));
  data::RecoveredBlocks recovered(device);
  recovered.take(*log);
  SFS_ASSIGN(const FoundFiles found,
             rig::files_of(*engine, [&](const meta::Attributes& file, Bytes bytes) {
               return rig::read_pieces(*engine, recovered, file.id, bytes);
             }));
  SFS_TRY(rig::check_meta(region));
  return found;
}

Result<void> restore(pmem::Region& region, MemoryDevice& device) {
  SFS_ASSIGN(const meta::DataLabel label, pair::read_label(device));
  pair::LogBlocks log(device);
  SFS_TRY(meta::restore_from_log(region, label, log));
  return {};
}

// ---- Calls

Actor::Actor(const Image& image)
    : image_(image),
      data_(image.data),
      device_(std::make_unique<MemoryDevice>(data_, contents_)),
      region_(std::make_unique<pmem::RecordingRegion>(image.meta)) {
  device_->record([this] { return region_->events().size(); });
  mount();
}

Actor::~Actor() = default;

void Actor::mount() {
  auto mounted = Mount::open(view(*region_, image_.kept), *device_, clock_, true);
  SFS_ASSERT(mounted.ok());
  mount_ = std::move(mounted).value();
}

void Actor::cut_and_mount() {
  mount_ = nullptr;
  ids_.clear();
  mount();
}

InodeId Actor::id(const std::string& name) {
  const auto known = ids_.find(name);
  if (known != ids_.end()) return known->second;
  const auto found = mount_->fs().lookup(mount_->fs().root(), name);
  SFS_ASSERT(found.ok());
  return ids_[name] = found->id;
}

void Actor::done(const Result<void>& result) {
  runs_ = runs_ && result.ok();
  model_.end_call();
  region_->mark();
}

void Actor::create(const std::string& name) {
  if (model_.has(name)) runs_ = false;
  if (!runs_) return;
  const auto made = mount_->fs().create(mount_->fs().root(), name, 0100644, 0, {}, {});
  if (made.ok()) ids_[name] = made->id;
  model_.create(name);
  done(made.ok() ? Result<void>() : made.error());
}

void Actor::unlink(const std::string& name) {
  if (!has(name)) return;
  const InodeId gone = id(name);
  const Result<void> result = mount_->fs().unlink(mount_->fs().root(), name);
  mount_->fs().forget(gone, 1);
  ids_.erase(name);
  model_.unlink(name);
  done(result);
}

void Actor::rename(const std::string& from, const std::string& to) {
  if (!has(from)) return;
  const InodeId moved = id(from);
  const InodeId root = mount_->fs().root();
  if (model_.has(to)) {
    const InodeId replaced = id(to);
    const Result<void> result = mount_->fs().rename(root, from, root, to, 0, {});
    mount_->fs().forget(replaced, 1);
    model_.rename(from, to);
    done(result);
  } else {
    const Result<void> result = mount_->fs().rename(root, from, root, to, 0, {});
    model_.rename(from, to);
    done(result);
  }
  ids_.erase(from);
  ids_[to] = moved;
}

void Actor::write(const std::string& name, uint64_t sector, uint64_t sectors) {
  if (!has(name)) return;
  const std::vector<std::byte> bytes(sectors * kSectorBytes, static_cast<std::byte>(++value_));
  const Result<void> result = mount_->fs().write(id(name), sector * kSectorBytes, bytes);
  model_.write(name, sector * kSectorBytes, bytes.size(), value_);
  done(result);
}

void Actor::write_scattered(const std::string& name, uint64_t blocks) {
  if (!has(name)) return;
  const std::vector<std::byte> bytes(kBlockSize, static_cast<std::byte>(++value_));
  Result<void> result;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t offset = 2 * i * kBlockSize;
    if (result.ok()) result = mount_->fs().write(id(name), offset, bytes);
    model_.write(name, offset, bytes.size(), value_);
  }
  done(result);
}

void Actor::truncate(const std::string& name, uint64_t sectors) {
  if (!has(name)) return;
  const Result<void> result = mount_->fs().truncate(id(name), sectors * kSectorBytes);
  model_.truncate(name, sectors * kSectorBytes);
  done(result);
}

void Actor::allocate(const std::string& name, int mode, uint64_t block, uint64_t count) {
  const uint64_t offset = block * kBlockSize, length = count * kBlockSize;
  const Result<void> result = mount_->fs().allocate(id(name), mode, offset, length);
  model_.zero(name, offset, length);
  done(result);
}

void Actor::punch(const std::string& name, uint64_t block, uint64_t count) {
  if (has(name)) allocate(name, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, block, count);
}

void Actor::zero(const std::string& name, uint64_t block, uint64_t count) {
  if (has(name)) allocate(name, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, block, count);
}

void Actor::preallocate(const std::string& name, uint64_t block, uint64_t count) {
  if (!has(name)) return;
  const uint64_t offset = block * kBlockSize, length = count * kBlockSize;
  done(mount_->fs().allocate(id(name), FALLOC_FL_KEEP_SIZE, offset, length));
}

void Actor::fsync(const std::string& name, bool data_only) {
  if (!has(name)) return;
  const Result<void> result = mount_->fs().fsync(id(name), data_only);
  model_.promise(name);
  done(result);
}

void Actor::sync() {
  const Result<void> result = mount_->fs().sync();
  model_.promise_without_meta();
  done(result);
}

void Actor::timer(uint64_t milliseconds) {
  clock_.ms += milliseconds;
  mount_->fs().maintenance().timer_round();
  device_->before_next({}, nullptr);
  done({});
}

void Actor::age() {
  for (uint64_t i = 0; i < rig::kTicks; ++i) {
    clock_.ms += rig::kTickMs;
    mount_->fs().maintenance().timer_round();
  }
  model_.promise_without_meta();
  done({});
}

void Actor::reclaim() {
  mount_->fs().maintenance().reclaim_round();
  done({});
}

bool Actor::has(const std::string& name) {
  runs_ = runs_ && model_.has(name);
  return runs_;
}

}  // namespace streamfs::joint
