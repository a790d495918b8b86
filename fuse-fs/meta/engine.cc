// Opening and closing, and the steps that all operations begin and end with.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine_impl.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"

namespace streamfs::meta {

Result<std::unique_ptr<Engine>> Engine::open(pmem::Region& region, const Superblock& super,
                                             Clock& clock, const Options& options) {
  SFS_ASSIGN(const Geometry geometry, Geometry::from(super));
  if (geometry.meta_size() > region.size())
    return Error{EINVAL, "META is smaller than its geometry"};
  SFS_TRY(recover_journal(region, geometry));
  std::unique_ptr<Engine> engine(new Engine(region, geometry, clock, options));
  SFS_TRY(engine->start(options));
  return engine;
}

namespace {

std::optional<uint64_t> used_inodes(const Superblock& super) {
  if (super.clean == 0 || super.clean_used_inodes == 0) return std::nullopt;
  return super.clean_used_inodes;
}

}  // namespace

Engine::Engine(pmem::Region& region, const Geometry& geometry, Clock& clock, const Options& options)
    : region_(region),
      geometry_(geometry),
      super_(geometry.super()),
      clock_(clock),
      read_only_(options.read_only),
      journal_(region, geometry_),
      heap_(store()),
      slots_(heap_, used_inodes(geometry.super())),
      orphans_(heap_),
      blocks_(region, geometry_),
      checksums_(region, geometry_),
      cache_(heap_, options.cache_bytes) {}

Engine::~Engine() {
  journal_.stop_checkpointer();
}

Change Engine::change() {
  return {journal_, region_};
}

Result<Superblock> Engine::change_superblock(const std::function<void(Superblock&)>& change) {
  const MutexLock lock(super_mutex_);
  Superblock next = super_;
  change(next);
  SFS_TRY(store_superblock(region_, next));
  ++next.generation;
  return super_ = next;
}

Result<void> Engine::start(const Options& options) {
  SFS_TRY(orphans_.load(geometry_.super().orphan_head));
  SFS_ASSIGN(root_, cache_.get(root()));
  if (!is_directory(root_->committed)) return Error{EIO, "the root is not a directory"};
  if (!read_only_ && geometry_.super().clean != 0) {
    SFS_TRY(change_superblock([](Superblock& super) {
      super.clean = 0;
      super.log_end = 0;
    }));
  }
  if (options.start_background && !read_only_) journal_.start_checkpointer();
  return {};
}

Result<void> Engine::attach_again(uint32_t mirror_token) {
  SFS_TRY(change_superblock([&](Superblock& super) {
    ++super.attachments;
    super.mirror_token = mirror_token;
  }));
  return {};
}

Result<void> Engine::raise_version(uint32_t version) {
  SFS_TRY(change_superblock(
      [&](Superblock& super) { super.version = std::max(super.version, version); }));
  return {};
}

Result<void> Engine::distrust() {
  SFS_TRY(change_superblock([](Superblock& super) { super.boot = kNoBoot; }));
  return {};
}

Superblock Engine::superblock() {
  const MutexLock lock(super_mutex_);
  return super_;
}

Result<void> Engine::close_clean(uint64_t log_end) {
  journal_.stop_checkpointer();
  if (read_only_) return {};
  journal_.checkpoint();
  SFS_TRY(region_.sync());  // before a superblock that says "clean" may be written back
  SFS_TRY(change_superblock([&](Superblock& super) {
    super.clean = 1;
    super.log_end = log_end;
    ++super.attachments;
    super.clean_used_inodes = slots_.exactly_used().value_or(0);
  }));
  return {};
}

Result<void> check_name(std::string_view name) {
  if (name.size() > kMaxNameLength) return Error{ENAMETOOLONG};
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos ||
      name.find('\0') != name.npos) {
    return Error{EINVAL, "impossible name"};
  }
  return {};
}

InodeImage& Change::next(Inode& inode) {
  for (Next& next : all()) {
    if (next.inode == &inode) return next.image;
  }
  SFS_ASSERT(count_ < images_.size());
  images_[count_] = {&inode, inode.committed};
  return images_[count_++].image;
}

Result<TxId> Change::commit() {
  for (Next& next : all()) put_image(tx, next.inode->id, next.inode->committed, next.image);
  SFS_ASSIGN(const TxId committed, journal_.commit(tx));
  for (Next& next : all()) next.inode->adopt(next.image);
  return committed;
}

uint64_t Engine::now() {
  const Timestamp time = clock_.now();
  return pack_time(time.seconds, time.nanoseconds);
}

Result<void> Engine::writable() const {
  if (read_only_) return Error{EROFS};
  return {};
}

Result<Locked> Engine::lock_inode(InodeId id) {
  SFS_ASSIGN(InodeRef ref, cache_.get(id));
  std::unique_lock lock(ref->mutex);
  if (!ref->alive) return Error{ESTALE, "no such inode"};
  return Locked{std::move(ref), std::move(lock)};
}

Result<Locked> Engine::lock_directory(InodeId id) {
  SFS_ASSIGN(Locked inode, lock_inode(id));
  if (!is_directory(inode->committed)) return Error{ENOTDIR};
  return inode;
}

Result<Directory*> Engine::entries(Inode& directory) {
  if (!directory.directory) {
    SFS_ASSIGN(directory.directory, Directory::load(heap_, directory.id, directory.committed));
  }
  return directory.directory.get();
}

Result<ExtentMap*> Engine::extents(Inode& inode) {
  if (!is_regular(inode.committed)) {
    return Error{is_directory(inode.committed) ? EISDIR : EINVAL, "not a regular file"};
  }
  if (!inode.extents) {
    SFS_ASSIGN(inode.extents, ExtentMap::load(heap_, inode.id, inode.committed, inode.uncommitted));
    if (!read_only_) SFS_TRY(finish_extending(inode));
  }
  return inode.extents.get();
}

Attributes Engine::attributes_of(const Inode& inode) const {
  const InodeImage& image = inode.committed;
  Attributes out;
  out.id = inode.id;
  out.generation = image.generation;
  out.mode = image.mode;
  out.nlink = image.nlink;
  out.uid = image.uid;
  out.gid = image.gid;
  out.size = is_directory(image) ? std::max<uint64_t>(image.size, kUnitSize) : inode.size;
  out.blocks = inode.blocks();
  out.atime = unpack_time(image.atime);
  out.mtime = unpack_time(inode.mtime);
  out.ctime = unpack_time(inode.ctime);
  out.btime = unpack_time(image.btime);
  out.rdev = image.rdev;
  out.vstream = vstream_of(image);
  out.vstream_generation = vstream_generation_of(image);
  out.vstream_hinted = (image.flags & kHintedVStream) != 0;
  return out;
}

Attributes Engine::referenced(Inode& inode) {
  cache_.add_lookup(inode);
  return attributes_of(inode);
}

Space Engine::space() {
  Space space;
  space.data_blocks = geometry_.data_blocks() - geometry_.reserved_blocks();
  space.free_blocks = blocks_.free_blocks() + blocks_.pending_blocks();
  space.heap_units = heap_.total();
  space.free_units = heap_.available();
  const uint64_t kept = heap_reserve(space.heap_units);
  space.inodes_free = files_fitting(space.free_units - std::min(kept, space.free_units));
  space.inodes_possible = slots_.used() + space.inodes_free;
  return space;
}

uint32_t Engine::vstream_capacity() const {
  return static_cast<uint32_t>(geometry_.region_bytes(RegionKind::kVStreams) / sizeof(VStreamSlot));
}

std::vector<VStreamSlot> Engine::load_vstreams() {
  std::vector<VStreamSlot> slots(vstream_capacity());
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    std::array<uint64_t, sizeof(VStreamSlot) / kWordSize> words{};
    for (size_t i = 0; i < words.size(); ++i) {
      const uint64_t at = slot * sizeof(VStreamSlot) + i * kWordSize;
      words[i] = region_.load(geometry_.region_offset(RegionKind::kVStreams, at));
    }
    std::memcpy(&slots[slot], words.data(), sizeof(VStreamSlot));
  }
  return slots;
}

Result<void> Engine::store_vstream(uint32_t slot, const VStreamSlot& value) {
  SFS_TRY(writable());
  if (slot >= vstream_capacity()) return Error{EINVAL, "vStream slot"};
  std::array<uint64_t, sizeof(VStreamSlot) / kWordSize> words{};
  std::memcpy(words.data(), &value, sizeof(value));
  Transaction tx(region_);
  for (size_t i = 0; i < words.size(); ++i) {
    const uint64_t at = geometry_.region_offset(
        RegionKind::kVStreams, uint64_t{slot} * sizeof(VStreamSlot) + i * kWordSize);
    if (region_.load(at) != words[i]) tx.patch(at, words[i]);
  }
  if (!tx.empty()) SFS_TRY(journal_.commit(tx));
  return {};
}

MetadataWords Engine::metadata_words() {
  // Read first, so that the difference is never below 0: checksums that are stored between the two
  // reads count as metadata.
  const uint64_t checksums = checksums_.words_programmed();
  return {region_.counters().words_programmed - checksums, journal_.stats().block_words};
}

}  // namespace streamfs::meta
