// The engine's parts and the pieces its operations are put together from. engine_namespace.cc,
// engine_attributes.cc, engine_xattrs.cc, engine_data.cc, engine_orphans.cc and engine_grow.cc hold
// the operations; see engine.h for thread safety and what a crash leaves.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuse-fs/meta/blob/acl.h"
#include "fuse-fs/meta/blob/xattr.h"
#include "fuse-fs/meta/checksums.h"
#include "fuse-fs/meta/conditional_record.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/inode_slots.h"
#include "fuse-fs/meta/orphans.h"

namespace streamfs::meta {

// One change being put together: next images of locked inodes and the transaction around them.
// Nothing in memory changes before its commit succeeds.
class Change {
 public:
  Change(Journal& journal, pmem::Region& region) : tx(region), journal_(journal) {}

  // The image the inode will have; starts as the committed one.
  InodeImage& next(Inode& inode);
  Result<TxId> commit();

  Transaction tx;

 private:
  struct Next {
    Inode* inode;
    InodeImage image;
  };
  std::span<Next> all() { return std::span(images_).first(count_); }

  Journal& journal_;
  std::array<Next, 8> images_;  // a rename's at most; the first count_ are there
  size_t count_ = 0;
};

// A locked inode.
struct Locked {
  InodeRef ref;
  std::unique_lock<Mutex> lock;  // after ref: unlocked before the pin goes
  Inode* operator->() const { return ref.get(); }
  Inode& operator*() const { return *ref; }
};

class EngineImpl final : public Engine {
 public:
  EngineImpl(pmem::Region& region, const Geometry& geometry, Clock& clock, const Options& options);
  ~EngineImpl() override;
  Result<void> start(const Options& options);

  InodeId root() const override { return InodeId{geometry_.super().root_inode}; }
  Result<Attributes> lookup(InodeId parent, std::string_view name) override;
  Result<Attributes> create(InodeId parent, std::string_view name,
                            const CreateRequest& request) override;
  Result<Attributes> create_unnamed(InodeId parent, const CreateRequest& request) override;
  Result<Attributes> link(InodeId target, InodeId parent, std::string_view name) override;
  Result<InodeId> unlink(InodeId parent, std::string_view name) override;
  Result<InodeId> rmdir(InodeId parent, std::string_view name) override;
  Result<RenameResult> rename(InodeId from, std::string_view name, InodeId to,
                              std::string_view new_name, uint32_t flags,
                              const Caller& caller = {}) override;
  void look_ahead(InodeId directory, uint64_t cookie, size_t most) override;
  Result<void> read_directory(InodeId directory, uint64_t cookie,
                              const std::function<bool(const DirectoryEntry&)>& visit) override;
  Result<Attributes> reference(InodeId id) override;
  void reference(std::span<const InodeId> ids, const Referenced& found) override;
  std::vector<InodeId> referenced() override { return cache_.looked_up(); }
  bool forget(InodeId id, uint64_t count) override;
  Result<void> free_orphan(InodeId id) override;
  std::vector<InodeId> leftover_orphans() override { return orphans_.leftovers(); }

  Result<Attributes> attributes(InodeId id) override;
  Result<Attributes> set_attributes(InodeId id, const AttributeChange& change) override;
  Result<std::string> read_symlink(InodeId id) override;
  Result<std::string> get_xattr(InodeId id, std::string_view name) override;
  Result<void> set_xattr(InodeId id, std::string_view name, std::string_view value,
                         int flags) override;
  Result<std::vector<std::string>> list_xattr(InodeId id) override;
  Result<void> remove_xattr(InodeId id, std::string_view name) override;
  Result<void> drop_capability(InodeId id) override;
  std::vector<InodeId> inodes_after(InodeId after, size_t most) override;
  Result<void> verify(InodeId id) override;
  Result<void> verify_maps() override;
  uint64_t mended() const override { return region_.counters().mended; }
  MetadataWords metadata_words() const override;
  Space space() override;
  bool heap_scarce() override { return heap_.scarce(); }
  bool heap_nearly_full() override { return heap_.nearly_full(); }
  bool count_inodes() override { return slots_.look_on(); }

  Result<std::vector<Piece>> map(InodeId id, FileBlock first, uint64_t count) override;
  Result<FileBlock> seek_data(InodeId id, FileBlock from) override;
  Result<FileBlock> seek_hole(InodeId id, FileBlock from) override;
  Result<void> begin_overwrite(InodeId id, std::span<const Piece> overwritten) override;
  using Engine::finish_write;
  Result<void> finish_write(InodeId id, const WriteResult& result, SlotRoom& room) override;
  Result<SlotRoom> slot_room(uint64_t slots) override;
  Result<void> set_size(InodeId id, uint64_t size) override;
  Result<void> remove_range(InodeId id, FileBlock first, uint64_t count) override;
  Result<void> preallocate(InodeId id, std::span<const WriteResult::NewPiece> pieces,
                           SlotRoom& room) override;
  Result<void> unwrite(InodeId id, FileBlock first, uint64_t count, SlotRoom& room) override;
  Result<void> commit_inode(InodeId id, uint64_t epoch) override;
  Result<bool> commit_ahead(InodeId id, uint64_t epoch, uint64_t flushed) override;
  bool dirty(InodeId id) override;
  bool needs_commit(InodeId id) override;
  void checksums(BlockNo first, std::span<uint32_t> out) override { checksums_.read(first, out); }
  void learn_checksum(BlockNo block, uint32_t crc) override { checksums_.learn(block, crc); }
  bool mend_checksum(BlockNo block, uint32_t crc) override { return checksums_.mend(block, crc); }

  Result<void> grow(const Superblock& larger, const Announce& announce) override;

  uint64_t cached_bytes() const override { return cache_.bytes(); }

  BlockAllocator& blocks() override { return blocks_; }
  Journal& journal() override { return journal_; }
  const Geometry& geometry() const override { return geometry_; }

  std::vector<VStreamSlot> load_vstreams() override;
  Result<void> store_vstream(uint32_t slot, const VStreamSlot& value) override;
  uint32_t vstream_capacity() const override;

  Result<void> attach_again(uint32_t mirror_token) override;
  Result<void> raise_version(uint32_t version) override;
  Result<void> distrust() override;
  Superblock superblock() override;
  Result<void> close_clean(uint64_t log_end) override;

 private:
  Result<Superblock> change_superblock(const std::function<void(Superblock&)>& change);
  // ---- Common to all operations (engine.cc)
  Store store() { return {region_, geometry_, journal_}; }
  Change change() { return {journal_, region_}; }
  uint64_t now();  // PackedTime
  Result<void> writable() const;
  Result<Locked> lock_inode(InodeId id);      // ESTALE once freed
  Result<Locked> lock_directory(InodeId id);  // ENOTDIR
  Result<Directory*> entries(Inode& directory);
  Result<ExtentMap*> extents(Inode& inode);  // EINVAL unless a regular file
  Attributes attributes_of(const Inode& inode) const;
  Attributes referenced(Inode& inode);  // counts a reference for the caller
  Result<Attributes> lookup_itself(InodeId id);

  Result<std::string> target_of(const Inode& symlink) const;
  Result<void> verify_directory(InodeId id, const InodeImage& image) const;
  Result<void> verify_extents(InodeId id, const InodeImage& image);
  Result<void> verify_blob(InodeId id, uint64_t first) const;

  // ---- Names
  // An inode on its way into META: its slot, its image, what it needs beside them.
  struct NewInode {
    InodeSlots::Claim slot;
    InodeImage image{};
    NewBlob long_symlink, xattrs;
    Orphans::Claim orphan;
  };
  Result<NewInode> prepare_inode(Change& change, const Inode& parent, const CreateRequest& request,
                                 uint32_t nlink);
  Result<void> put_symlink(Change& change, NewInode& inode, std::string_view target);
  std::pair<Result<TxId>, Locked> commit_new(Change& change, NewInode& made);
  void touch(Change& change, Inode& directory);
  Result<InodeRef> named(InodeId id);
  Result<void> lock_all(InodeLocks& locks, std::initializer_list<InodeId> directories,
                        std::span<const InodeId> more);
  Result<bool> try_lock(InodeLocks& locks, InodeId id);
  // Takes one name away; the inode joins the orphans with its last.
  Result<Orphans::Claim> put_drop_name(Change& change, Inode& inode);
  Result<InodeId> remove_name(InodeId parent, std::string_view name, bool directory);
  Result<InodeId> remove_found(Inode& from, const Directory::Found& found, Inode& inode,
                               bool directory);
  Result<void> check_removable(Inode& inode, bool directory);

  struct Rename;
  using Hints = std::array<InodeId, 2>;  // what the names led to
  Result<std::optional<RenameResult>> try_rename(InodeId from, std::string_view name, InodeId to,
                                                 std::string_view new_name, uint32_t flags,
                                                 const Caller& caller, Hints& hints);
  Result<void> check_rename(const Rename& rename, uint32_t flags);
  Result<void> check_replaced(const Rename& rename);
  Result<void> check_not_inside(InodeId moved, InodeId directory) const;
  Result<std::optional<NewInode>> put_vacate(Change& change,
                                             Rename& rename);  // a whiteout, or none
  Result<RenameResult> move_name(Rename& rename, std::string_view new_name);
  Result<RenameResult> exchange_names(Rename& rename, const Directory::Found& target, Inode& other);
  void put_moved(Change& change, Inode& moved, Inode& from, Inode& to);

  // ---- Orphans
  Result<void> drop_chain(Inode& inode, UnitKind kind);
  Result<void> drop_blob(Inode& inode, uint64_t InodeImage::* pointer);
  Result<void> drop_inode(Inode& inode);
  Result<void> collect_runs(uint64_t unit, std::vector<BlockRun>& runs) const;
  Result<TxId> commit_drop(Change& change, const std::vector<uint64_t>& units,
                           const std::vector<BlockRun>& runs);
  void discard_current(Inode& inode);

  // ---- Extended attributes
  Result<XattrMap> xattrs(const Inode& inode) const;
  Result<void> set_acl(InodeId id, std::string_view name, std::string_view value, bool kill_sgid);
  Result<NewBlob> put_xattrs(Change& change, InodeId id, InodeImage& image,
                             const XattrMap& attributes);
  Result<void> commit_xattrs(Change& change, Inode& inode, const XattrMap& attributes);
  Result<void> commit_without_capability(Change& change, Inode& inode);
  Result<std::optional<Acl>> default_acl(const Inode& directory) const;
  Result<NewBlob> put_permissions(Change& change, InodeId id, InodeImage& image,
                                  const Inode& parent, uint32_t umask);

  // ---- Data
  void discard(const std::vector<ExtentMap::Dropped>& runs);
  void store_new_checksums(const WriteResult& result, Inode& inode);
  void publish_checksums(Inode& inode, uint64_t epoch);
  void flush_new_checksums(const Inode& inode, uint64_t epoch);
  Result<void> commit_steps(Inode& inode, uint64_t epoch);
  Result<bool> commit_step(Inode& inode, uint64_t epoch,
                           std::span<const DataCondition> conditions = {});
  Result<void> commit_plan(Inode& inode, Change& change, ExtentMap::Plan plan);
  Result<void> finish_extending(Inode& inode);
  void take_back(ExtentMap& extents, std::span<const WriteResult::NewPiece> pieces);
  static void put_current(Inode& inode, InodeImage& next, uint64_t epoch,
                          const ExtentMap::Plan& plan);
  static void size_committed(Inode& inode, uint64_t epoch);

  pmem::Region& region_;
  Geometry geometry_;
  Mutex super_mutex_;                              // leaf
  Superblock super_ SFS_GUARDED_BY(super_mutex_);  // as META has it
  Clock& clock_;
  const bool read_only_;
  Journal journal_;
  // Each has a mutex that every thread takes: in lines of their own.
  alignas(kLineSize) Heap heap_;
  alignas(kLineSize) InodeSlots slots_;
  alignas(kLineSize) Orphans orphans_;
  alignas(kLineSize) BlockAllocator blocks_;
  Checksums checksums_;
  InodeCache cache_;
  InodeRef root_;       // the kernel's reference to the root is never said
  Mutex rename_mutex_;  // before every inode: directories change parents one at a time
};

// Errors: EINVAL, ENAMETOOLONG.
Result<void> check_name(std::string_view name);

}  // namespace streamfs::meta
